"""One machine: a disk, clocks, and now and then a broker's process. The second runtime.

It stands where `runtime.server` and `runtime.process` stand, and does what they do in the same order: hands in what was
read, gathers it for a step, carries out what a step asks for, tells what the disk did, and keeps the timer. The node in
it is the one that `pandomq start` runs. When a node asks to be replaced another one takes its place: a new life, though
the process is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.effects import Completion
from pandomq.journal.faults import StoreFault
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.node.data.effects import carry_out as carry_out_data
from pandomq.node.node import Node
from pandomq.node.output import Output, carry_out
from pandomq.node.settings import NodeSettings
from pandomq.replica.roles.transitions import Role
from pandomq.sim.agenda import Agenda
from pandomq.sim.client_side import ClientSide
from pandomq.sim.clock import ProcessClock, WallClock
from pandomq.sim.disk import NEVER_MS, SimDisk
from pandomq.sim.files import Loss
from pandomq.sim.network import Network
from pandomq.sim.trace import Trace

if TYPE_CHECKING:
    from pandomq.node.attempts import Attempt
    from pandomq.node.dialed import Dialed
    from pandomq.node.logins import Question
    from pandomq.replica.replica import Replica
    from pandomq.sim.watch import Watch

CLUSTER: Final = ClusterId("5f0c4a56-2a7e-4b8c-9d5e-7a1f3c9b2e10")
GATHER_CHANCE: Final = 0.3
"""Of a step to wait a millisecond for what else arrives."""


class Machine(ClientSide):
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
        lives: Iterator[int],
        network: Network,
        *,
        drift_permille: int = 0,
    ) -> None:
        super().__init__(name, agenda, trace, random, disk, lives, drift_permille)
        self._settings = settings
        self._journal_settings = journal_settings
        self.watch = watch
        self._network = network
        self.wall = WallClock(self.steady)
        self.clock = ProcessClock(self.steady, self.wall)
        self.node: Node | None = None
        self.journal: Journal
        """Of the node."""
        self.renewing = False
        """Its process is between two lives."""
        self.last_loss = Loss.NONE
        self.secondary = settings.cluster.observer
        self.serving = False
        self.stopping = False
        self.steps = 0
        self._step_asked = False
        self._told_ms = 0
        self._timer_ms = NEVER_MS
        self._timer_number = 0

    # The process.

    @property
    def reachable(self) -> bool:
        return self.node is not None

    @property
    def up(self) -> bool:
        return self.node is not None or self.renewing

    @property
    def accepting(self) -> bool:
        """Clients may come, if only to hear who serves."""
        return self.node is not None and self.node.following and not self.stopping

    @property
    def replica(self) -> Replica | None:
        """None while it reads its store."""
        replica = None if self.node is None else self.node.peers.replica
        return None if replica is None or replica.role is Role.RECOVERING else replica

    @property
    def broker_ms(self) -> int:
        """What time it is for the broker, if it serves."""
        ahead_ms = 0 if self.node is None else self.node.broker.clock_ahead_ms
        return self.clock.now_ms() - ahead_ms

    @property
    def late_ms(self) -> int:
        return self.steady.now_ms() - self._told_ms

    def start(self) -> None:
        assert not self.up
        self._trace.say(self.name, "starts")
        self.clock = ProcessClock(self.steady, self.wall)
        self.stopping = False
        self._begin()

    def _begin(self, old: Node | None = None) -> None:
        self.begin_life()
        self._timer_ms = NEVER_MS
        self._step_asked = False
        self.journal = self._make_journal()
        self.node = Node(self._settings, Random(self._random.getrandbits(64)), self.clock.now_ms(), self.journal)
        if old is not None:
            self.node.views.inherit(old.views)
        self._step()

    def _make_journal(self) -> Journal:
        """Where brokers dial each other a store that is empty belongs to no cluster, unless this is the beginning."""
        cluster = self._settings.cluster
        if cluster.founding or not cluster.key:
            return Journal(
                self._journal_settings, node_name=NodeName(self.name), new_cluster_id=CLUSTER, cluster_id=CLUSTER
            )
        return Journal(
            self._journal_settings,
            node_name=NodeName(self.name),
            new_cluster_id=ClusterId(""),
            new_store_id=f"{self._random.getrandbits(64):016x}",
        )

    def crash(self, loss: Loss) -> None:
        """The process is killed; with any loss but NONE the machine goes down with it."""
        self._trace.say(self.name, "is killed" if loss is Loss.NONE else f"loses power: unsynced {loss.value} lost")
        self._end(None, loss)

    def _end(self, fault: StoreFault | None, loss: Loss) -> None:
        self._note_founded()
        self.node = None
        self.serving = self.renewing = False
        self.wake_up()
        self.last_loss = loss
        self.disk.crash(loss)
        self._network.went(self.name, told=loss is Loss.NONE)
        cables, self.cables = self.cables, {}
        for cable in cables:
            # What the system had taken goes out even after its process has gone, unless the machine has, too.
            cable.crashed(heard=loss is Loss.NONE or self._random.random() < 0.5)
        self.watch.ended(self, fault)

    def _note_founded(self) -> None:
        """Who has begun with the others does not do so again, even if it has lost everything."""
        if self.replica is not None:
            self._may_not_found()

    def _may_not_found(self) -> None:
        cluster = msgspec.structs.replace(self._settings.cluster, founding=False)
        self._settings = msgspec.structs.replace(self._settings, cluster=cluster)

    def abandon_store(self) -> None:
        if self.up:
            self._end(None, Loss.ALL)
        self._may_not_found()

    def _leave(self, reason: str) -> None:
        """The node is gone. A disk that does not answer keeps the new one waiting."""
        self._trace.say(self.name, f"begins again: {reason}")
        old = self.node
        assert old is not None
        self._note_founded()
        self.node = None
        self.serving = False
        self.renewing = True
        self.cables.clear()
        self._network.went(self.name, told=True)
        self.watch.left(self)
        life = self.life

        def begin() -> None:
            if self.life != life or not self.renewing:
                return
            if self.disk.idle_ms > self._agenda.now_ms:
                # It has stalled meanwhile.
                self._agenda.at(self.disk.idle_ms, lambda: self.when_running(begin))
            else:
                self._renew(old)

        self._agenda.at(self.disk.idle_ms, lambda: self.when_running(begin))

    def _renew(self, old: Node) -> None:
        try:
            # Nobody waits for it any more, but what failed must not be taken for done by who comes next.
            old.disk_completed(self.disk.take_completions(self._agenda.now_ms), self.clock.now_ms())
        except StoreFault as fault:
            self._fail(fault)
            return
        if self.stopping:
            self._trace.say(self.name, "has stopped")
            self._end(None, Loss.NONE)
            return
        self.renewing = False
        self._begin(old)

    def _fail(self, fault: StoreFault) -> None:
        self._trace.say(self.name, f"ends: {fault}")
        self._end(fault, self._random.choice((Loss.NONE, Loss.SOME)))

    def shut_down(self) -> None:
        """In order, as on SIGTERM."""
        assert self.node is not None
        self._trace.say(self.name, "is asked to stop")
        self.serving = False
        self.stopping = True
        self.node.retirement.begin()
        self._step()
        self._agenda.after(10, self._shut_down_when_retired(self.life))

    def _shut_down_when_retired(self, life: int) -> Callable[[], None]:
        """A root hands over first, if it can; then this life ends by itself."""

        def look() -> None:
            if self.life != life or self.node is None:
                return
            if not self.node.retirement.over:
                self._agenda.after(10, self._shut_down_when_retired(life))
                return
            self.node.shut_down(self.clock.now_ms())
            self._step()
            self._agenda.after(50, self._close_when_alone(life, 40))

        return lambda: self.when_running(look)

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

    # The step.

    def wake(self) -> None:
        self._ask_step()

    def note_told(self) -> int:
        self._told_ms = self.steady.now_ms()
        return self._told_ms

    def cluster_ms(self) -> int:
        return self.clock.now_ms()

    def _ask_step(self) -> None:
        if not self._step_asked:
            self._step_asked = True
            delay_ms = 1 if self._random.random() < GATHER_CHANCE else 0
            self._agenda.after(delay_ms, self.in_life(self._asked_step))

    def _asked_step(self) -> None:
        self._step_asked = False
        self._step()

    def _step(self) -> None:
        node = self.node
        assert node is not None
        self.steps += 1
        if not node.ready:
            self.clock.go_on_from(node.last_ms)
        output = node.step(self.clock.now_ms(), self.note_told())
        self._carry_out(node, output)
        # Also at what it has said and stored before it goes.
        self.watch.stepped(self)
        if output.restart is not None:
            self._leave(output.restart)
            return
        if node.next_deadline_ms < self._timer_ms:
            self._set_timer()
        if not self.serving and not self.stopping and node.ready:
            self._open()

    def _carry_out(self, node: Node, output: Output) -> None:
        self.submit(list(output.disk))
        for peer, data in output.sends:
            self._network.send(self.name, peer, data)
        for dialed, octets in output.peer_writes:
            self._trace.crossed(self._border, bytes(octets))
            dialed.socket.write(octets)
        for link, data in output.writes:
            self._trace.crossed(self._border, data)
            link.socket.write(data)

        for effect in output.data:
            carry_out_data(effect)

        def dial(dialed: Dialed) -> None:
            self._network.dial(self, dialed)

        def verify(attempt: Attempt, question: Question) -> None:
            self._agenda.after(1, self.in_life(self._verifier(node, attempt, question)))

        for control in (*output.controls, *output.peer_controls):
            carry_out(control, dial, verify)
        if output.more:
            self._ask_step()

    def _verifier(self, node: Node, attempt: Attempt, question: Question) -> Callable[[], None]:
        def verify() -> None:
            node.verified(attempt, question, fits=question.fits(), now_ms=self.clock.now_ms())
            self._ask_step()

        return verify

    # The disk.

    def completed(self, completions: list[Completion]) -> None:
        assert self.node is not None
        try:
            self.node.disk_completed(completions, self.clock.now_ms())
        except StoreFault as fault:
            self._fail(fault)
            return
        self._step()
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
        delay_ms = self.steady.world_ms(max(0, self._timer_ms - self.clock.now_ms()))

        def ring() -> None:
            if number == self._timer_number:
                self._tick()

        self._agenda.after(delay_ms, self.in_life(ring))

    def _tick(self) -> None:
        assert self.node is not None
        self.node.tick(self.clock.now_ms(), self.steady.now_ms())
        self._step()
        if self.reachable:
            self._set_timer()
