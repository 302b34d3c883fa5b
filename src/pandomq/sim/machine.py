"""One machine: a disk, clocks, and now and then a broker's process. The second runtime.

It stands where `runtime.server` and `runtime.process` stand, and does what they do in the same order: hands in what was
read, gathers it for a step, carries out what a step asks for, tells what the disk did, and keeps the timer. The node in
it is the one that `pandomq start` runs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, Protocol, assert_never

from pandomq import limits
from pandomq.ids import ClusterId, NodeName
from pandomq.journal.faults import StoreFault
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.node.node import Node
from pandomq.node.output import Abort, Close, Output, PauseReading, ResumeReading, VerifyPassword
from pandomq.node.settings import NodeSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.cable import Cable
from pandomq.sim.clock import ProcessClock, WallClock
from pandomq.sim.disk import NEVER_MS, SimDisk
from pandomq.sim.files import Loss
from pandomq.sim.frames import Heard
from pandomq.sim.trace import Trace

if TYPE_CHECKING:
    from pandomq.node.attempts import Attempt
    from pandomq.node.logins import Question

CLUSTER: Final = ClusterId("5f0c4a56-2a7e-4b8c-9d5e-7a1f3c9b2e10")
GATHER_CHANCE: Final = 0.3
"""Of a step to wait a millisecond for what else arrives."""


class Watch(Protocol):
    """Who looks on."""

    def emitted(self, cable: Cable, methods: list[Heard]) -> None:
        """The broker wrote this."""

    def stepped(self, machine: Machine) -> None: ...

    def opened(self, machine: Machine) -> None:
        """It serves again."""

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        """The process is gone; with a fault if it ended itself."""


class Machine:
    def __init__(
        self,
        name: str,
        agenda: Agenda,
        trace: Trace,
        random: Random,
        disk: SimDisk,
        settings: NodeSettings,
        journal_settings: JournalSettings,
        watch: Watch,
    ) -> None:
        self.name = name
        self._agenda = agenda
        self._trace = trace
        self._border = name.encode()
        self._random = random
        self.disk = disk
        self._settings = settings
        self._journal_settings = journal_settings
        self.watch = watch
        self.wall = WallClock(agenda)
        self.clock = ProcessClock(agenda, self.wall)
        self.life = 0
        """How many processes there were."""
        self.node: Node | None = None
        self.serving = False
        self.stopping = False
        self.cables: dict[Cable, None] = {}
        self.steps = 0
        self._paused_until_ms = 0
        self._step_asked = False
        self._timer_ms = self._disk_due_ms = NEVER_MS
        self._timer_number = 0
        self._buffer = bytearray(limits.READ_CHUNK_BYTES)

    # The process.

    def start(self) -> None:
        assert self.node is None
        self.life += 1
        self._trace.say(self.name, "starts")
        self.clock = ProcessClock(self._agenda, self.wall)
        self._timer_ms = self._disk_due_ms = NEVER_MS
        self._step_asked = self.stopping = False
        journal = Journal(self._journal_settings, node_name=NodeName(self.name), new_cluster_id=CLUSTER)
        self.node = Node(self._settings, Random(self._random.getrandbits(64)), self.clock.now_ms(), journal)
        self._step()

    def crash(self, loss: Loss) -> None:
        """The process is killed; with any loss but NONE the machine goes down with it."""
        self._trace.say(self.name, "is killed" if loss is Loss.NONE else f"loses power: unsynced {loss.value} lost")
        self._end(None, loss)

    def _end(self, fault: StoreFault | None, loss: Loss) -> None:
        self.node = None
        self.serving = False
        self._paused_until_ms = 0
        self.disk.crash(loss)
        cables, self.cables = self.cables, {}
        for cable in cables:
            # What the system had taken goes out even after its process has gone, unless the machine has, too.
            cable.crashed(heard=loss is Loss.NONE or self._random.random() < 0.5)
        self.watch.ended(self, fault)

    def _fail(self, fault: StoreFault) -> None:
        self._trace.say(self.name, f"ends: {fault}")
        self._end(fault, self._random.choice((Loss.NONE, Loss.SOME)))

    def shut_down(self) -> None:
        """In order, as on SIGTERM."""
        assert self.node is not None
        self._trace.say(self.name, "is asked to stop")
        self.serving = False
        self.stopping = True
        self.node.shut_down(self.clock.now_ms())
        self._step()
        self._agenda.after(50, self._close_when_alone(self.life, 40))

    def _close_when_alone(self, life: int, patience: int) -> Callable[[], None]:
        def look() -> None:
            if self.life != life or self.node is None:
                return
            if self.node.link_count and patience:
                self._agenda.after(50, self._close_when_alone(life, patience - 1))
                return
            self.node.close()
            self._step()
            self._end_when_closed()

        return lambda: self.when_running(look)

    def _end_when_closed(self) -> None:
        if self.stopping and self.node is not None and self.node.closed:
            self._trace.say(self.name, "has stopped")
            self._end(None, Loss.NONE)

    def pause(self, for_ms: int) -> None:
        """The process does nothing for a while; the disk and the network go on."""
        self._trace.say(self.name, f"does nothing for {for_ms} ms")
        self._paused_until_ms = self._agenda.now_ms + for_ms

    def when_running(self, call: Callable[[], None]) -> None:
        if self._agenda.now_ms < self._paused_until_ms:
            self._agenda.at(self._paused_until_ms, lambda: self.when_running(call))
        else:
            call()

    # What sockets report.

    def connect(self, cable: Cable, port: int) -> None:
        assert self.node is not None and self.serving
        self.cables[cable] = None
        cable.link = self.node.accept(cable, ("127.0.0.1", port), self.clock.now_ms())
        self._ask_step()

    def received(self, cable: Cable, data: bytes) -> None:
        if self.node is None or cable.link is None:
            return
        self._trace.crossed(self._border, data)
        for start in range(0, len(data), len(self._buffer)):
            piece = data[start : start + len(self._buffer)]
            # One buffer for all reads, as in the runtime: what the node keeps of it without a copy, the next spoils.
            self._buffer[: len(piece)] = piece
            self.node.receive(cable.link, memoryview(self._buffer)[: len(piece)], self.clock.now_ms())
        self._ask_step()

    def lost(self, cable: Cable) -> None:
        self.cables.pop(cable, None)
        if self.node is not None and cable.link is not None:
            self.node.lost(cable.link, self.clock.now_ms())
            self._ask_step()

    def paused(self, cable: Cable) -> None:
        if self.node is not None and cable.link is not None:
            self.node.pause(cable.link)

    def resumed(self, cable: Cable) -> None:
        if self.node is not None and cable.link is not None:
            self.node.resume(cable.link)
            self._ask_step()

    # The step.

    def wake(self) -> None:
        """Somebody has given the node work."""
        self._ask_step()

    def _ask_step(self) -> None:
        if not self._step_asked:
            self._step_asked = True
            delay_ms = 1 if self._random.random() < GATHER_CHANCE else 0
            self._agenda.after(delay_ms, self._in_life(self._asked_step))

    def _in_life(self, call: Callable[[], None]) -> Callable[[], None]:
        """The call, unless the process is another one by then."""
        life = self.life

        def called() -> None:
            if self.life == life and self.node is not None:
                call()

        return lambda: self.when_running(called)

    def _asked_step(self) -> None:
        self._step_asked = False
        self._step()

    def _step(self) -> None:
        assert self.node is not None
        self.steps += 1
        self._carry_out(self.node, self.node.step(self.clock.now_ms(), self._agenda.now_ms))
        self.watch.stepped(self)
        if self.node.next_deadline_ms < self._timer_ms:
            self._set_timer()

    def _carry_out(self, node: Node, output: Output) -> None:
        if output.disk:
            self._trace.asked(self._border, output.disk)
            self.disk.submit(list(output.disk), self._agenda.now_ms)
        self._await_disk()
        for link, data in output.writes:
            self._trace.crossed(self._border, data)
            link.socket.write(data)
        for control in output.controls:
            match control:
                case Close(link):
                    link.socket.close()
                case Abort(link):
                    link.socket.abort()
                case PauseReading(link):
                    link.socket.pause_reading()
                case ResumeReading(link):
                    link.socket.resume_reading()
                case VerifyPassword(attempt, question):
                    self._agenda.after(1, self._in_life(self._verifier(node, attempt, question)))
                case _:
                    assert_never(control)
        if output.more:
            self._ask_step()

    def _verifier(self, node: Node, attempt: Attempt, question: Question) -> Callable[[], None]:
        def verify() -> None:
            node.verified(attempt, question, fits=question.fits(), now_ms=self.clock.now_ms())
            self._ask_step()

        return verify

    # The disk.

    def disk_hurries(self) -> None:
        """What it had put off is done soon."""
        self.disk.hurry(self._agenda.now_ms)
        if self.node is not None:
            self._await_disk()

    def _await_disk(self) -> None:
        due_ms = self.disk.next_ms
        if due_ms < self._disk_due_ms:
            self._disk_due_ms = due_ms
            self._agenda.at(due_ms, self._in_life(self._disk_ready))

    def _disk_ready(self) -> None:
        assert self.node is not None
        self._disk_due_ms = NEVER_MS
        completions = self.disk.take_completions(self._agenda.now_ms)
        if not completions:
            self._await_disk()
            return
        try:
            self.node.disk_completed(completions, self.clock.now_ms())
        except StoreFault as fault:
            self._fail(fault)
            return
        self.clock.go_on_from(self.node.last_ms)
        self._step()
        if not self.serving and not self.stopping and self.node.ready:
            self._open()
        self._end_when_closed()

    def _open(self) -> None:
        assert self.node is not None
        self.serving = True
        self._trace.say(self.name, "serves")
        self._set_timer()
        self.watch.opened(self)

    # Time.

    def _set_timer(self) -> None:
        assert self.node is not None
        self._timer_number += 1
        number = self._timer_number
        self._timer_ms = self.node.next_deadline_ms
        delay_ms = max(0, self._timer_ms - self.clock.now_ms())

        def ring() -> None:
            if number == self._timer_number:
                self._tick()

        self._agenda.after(delay_ms, self._in_life(ring))

    def _tick(self) -> None:
        assert self.node is not None
        self.node.tick(self.clock.now_ms(), self._agenda.now_ms)
        self._step()
        self._set_timer()
