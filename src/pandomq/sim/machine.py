"""One machine of the simulated runtime: a disk, clocks, and at times a broker's process.

It replaces `runtime.server` and `runtime.process`, and does the same in the same order: it passes received bytes to the
node, gathers them for a step, carries out the effects of the step, reports completions of the disk, and keeps the
timer. The node is the one that `pandomq start` runs. When a node requests a restart, another one replaces it: this is a
new life in the same process.
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
from pandomq.sim.clock import ProcessClock, WallClock
from pandomq.sim.disks.disk import NEVER_MS, SimDisk
from pandomq.sim.disks.files import Loss
from pandomq.sim.injection import Injected
from pandomq.sim.network.byte_network import ByteNetwork
from pandomq.sim.network.connections import Connections
from pandomq.sim.trace import WorldTrace

if TYPE_CHECKING:
    from pandomq.cluster.dialed_connection import Dialed
    from pandomq.node.clients.attempts import LoginAttempt
    from pandomq.node.clients.logins import PasswordCheck
    from pandomq.replica.replica import Replica
    from pandomq.sim.watch import Watch

CLUSTER: Final = ClusterId("5f0c4a56-2a7e-4b8c-9d5e-7a1f3c9b2e10")
GATHER_CHANCE: Final = 0.3
"""The chance that a step waits a millisecond for further input."""


class Machine(Connections):
    def __init__(
        self,
        name: str,
        agenda: Agenda,
        trace: WorldTrace,
        random: Random,
        disk: SimDisk,
        settings: NodeSettings,
        journal_settings: JournalSettings,
        watch: Watch,
        lives: Iterator[int],
        network: ByteNetwork,
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
        """The node's journal."""
        self.renewing = False
        """Whether the process is between two lives."""
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
        """Whether clients may connect, if only to be told which broker serves."""
        return self.node is not None and self.node.following and not self.stopping

    @property
    def replica(self) -> Replica | None:
        """The replica; None while the node reads its store."""
        replica = None if self.node is None else self.node.peers.replica
        return None if replica is None or replica.role is Role.RECOVERING else replica

    @property
    def network(self) -> ByteNetwork:
        return self._network

    @property
    def settings(self) -> NodeSettings:
        return self._settings

    @property
    def broker_ms(self) -> int:
        """The broker's time, if it serves."""
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
        """Opens the journal. In a cluster a broker with an empty store belongs to no cluster, except at the beginning
        of the world."""
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
        """Kills the process; with any loss but NONE the machine fails with it."""
        self._trace.say(self.name, "is killed" if loss is Loss.NONE else f"loses power: unsynced {loss.value} lost")
        self._end(None, loss)

    def _end(self, fault: StoreFault | None, loss: Loss) -> None:
        self._note_founded()
        self.node = None
        self.serving = self.renewing = False
        self.wake_up()
        self.last_loss = loss
        self.disk.crash(loss)
        self._network.died(self.name, with_machine=loss is not Loss.NONE)
        cables, self.cables = self.cables, {}
        for cable in cables:
            # Bytes that the operating system had accepted are sent even after the process has gone, unless the machine
            # has failed, too.
            cable.crashed(heard=loss is Loss.NONE or self._random.random() < 0.5)
        self.watch.ended(self, fault)

    def _note_founded(self) -> None:
        """A machine that has founded the cluster once does not do so again, even if it loses everything."""
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
        """The node is gone. If a disk does not answer, the new node waits."""
        self._trace.say(self.name, f"begins again: {reason}")
        old = self.node
        assert old is not None
        self._note_founded()
        self.node = None
        self.serving = False
        self.renewing = True
        self.cables.clear()
        self._network.left(self.name)
        self.watch.left(self)
        life = self.life

        def begin() -> None:
            if self.life != life or not self.renewing:
                return
            if self.disk.idle_ms > self._agenda.now_ms:
                # The disk has stalled meanwhile.
                self._agenda.at(self.disk.idle_ms, lambda: self.when_running(begin))
            else:
                self._renew(old)

        self._agenda.at(self.disk.idle_ms, lambda: self.when_running(begin))

    def _renew(self, old: Node) -> None:
        try:
            # No node waits for these completions any more, but the next node must not treat a failed request as done.
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
        """Stops the process in order, as SIGTERM does."""
        assert self.node is not None
        self._trace.say(self.name, "is asked to stop")
        self.serving = False
        self.stopping = True
        self.node.graceful_stop.begin()
        self._step()
        self._agenda.after(10, self._shut_down_when_over(self.life))

    def _shut_down_when_over(self, life: int) -> Callable[[], None]:
        """A root hands over first, if it can; then this life ends by itself."""

        def look() -> None:
            if self.life != life or self.node is None:
                return
            if not self.node.graceful_stop.over:
                self._agenda.after(10, self._shut_down_when_over(life))
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
        output = self.enter(node.step)(self.clock.now_ms(), self.note_told())
        if node.guard.errors:
            self._look_at(node.guard.errors)
        self._carry_out(node, output)
        # The watch also sees what the node has sent and stored before it ends.
        self.watch.stepped(self)
        if output.restart is not None:
            self._leave(output.restart)
            return
        deadline_ms = node.next_deadline_ms
        if deadline_ms < self._timer_ms:
            self._set_timer(deadline_ms)
        if not self.serving and not self.stopping and node.ready:
            self._open()

    def _look_at(self, errors: list[Exception]) -> None:
        """Brokers continue after an unexpected exception; a world does not, unless the exception was injected."""
        for error in errors:
            if not isinstance(error, Injected):
                raise error
            self._trace.say(self.name, f"fails {error}")
        errors.clear()

    def _carry_out(self, node: Node, output: Output) -> None:
        self.submit(list(output.disk))
        for link, data in output.writes:
            self._trace.crossed(self._border, bytes(data))
            link.socket.write(data)
        for effect in output.data:
            carry_out_data(effect)
        if output.controls:
            self._carry_out_controls(node, output)
        if output.more:
            self._ask_step()

    def _carry_out_controls(self, node: Node, output: Output) -> None:
        def dial(dialed: Dialed) -> None:
            self._network.dial(self, dialed)

        def verify(attempt: LoginAttempt, question: PasswordCheck) -> None:
            self._agenda.after(1, self.in_life(self._verifier(node, attempt, question)))

        for control in output.controls:
            carry_out(control, dial, verify)

    def _verifier(self, node: Node, attempt: LoginAttempt, question: PasswordCheck) -> Callable[[], None]:
        def verify() -> None:
            self.enter(node.verified)(attempt, question, fits=question.fits(), now_ms=self.clock.now_ms())
            self._ask_step()

        return verify

    # The disk.

    def completed(self, completions: list[Completion]) -> None:
        assert self.node is not None
        try:
            self.enter(self.node.disk_completed)(completions, self.clock.now_ms())
        except StoreFault as fault:
            self._fail(fault)
            return
        self._step()
        self._end_when_closed()

    def _open(self) -> None:
        assert self.node is not None
        self.serving = True
        self._trace.say(self.name, "serves")
        self._set_timer(self.node.next_deadline_ms)
        self.watch.opened(self)

    # Time.

    def _set_timer(self, deadline_ms: int) -> None:
        self._timer_number += 1
        number = self._timer_number
        self._timer_ms = deadline_ms
        delay_ms = self.steady.world_ms(max(0, deadline_ms - self.clock.now_ms()))

        def ring() -> None:
            if number == self._timer_number:
                self._tick()

        self._agenda.after(delay_ms, self.in_life(ring))

    def _tick(self) -> None:
        node, now_ms = self.node, self.clock.now_ms()
        assert node is not None
        # This timer has expired; a step sets the next one.
        self._timer_ms = NEVER_MS
        if node.tick_deadline_ms <= now_ms:
            self.enter(node.tick)(now_ms, self.steady.now_ms())
        elif (deadline_ms := node.next_deadline_ms) > now_ms:
            # An earlier step has done the work for which the timer was set.
            return self._set_timer(deadline_ms)
        self._step()
