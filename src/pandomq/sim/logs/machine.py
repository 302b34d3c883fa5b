"""One machine of a world of logs: a disk, a clock that drifts, and at times a keeper's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, Protocol

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.effects import Completion
from pandomq.journal.faults import StoreFault
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.replica.effects import Effect
from pandomq.replica.members.membership import Member
from pandomq.replica.replica import Replica
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss
from pandomq.sim.host import Host
from pandomq.sim.logs.keeper import Keeper
from pandomq.sim.logs.message_filter import MessageFilter
from pandomq.sim.logs.network import Network
from pandomq.sim.trace import WorldTrace

CLUSTER: Final = ClusterId("5f0c4a56-2a7e-4b8c-9d5e-7a1f3c9b2e10")
DISK_BYTES: Final = 64 * 2**20
TICKS_PER_LEASE: Final = 10


class LogWatch(Protocol):
    """Observes the machines."""

    def told(self, machine: LogMachine, effect: Effect) -> None: ...

    def stepped(self, machine: LogMachine) -> None: ...

    def ended(self, machine: LogMachine, fault: StoreFault | None) -> None: ...


class LogMachine(Host):
    def __init__(
        self,
        name: str,
        agenda: Agenda,
        trace: WorldTrace,
        random: Random,
        lives: Iterator[int],
        network: Network,
        message_filter: MessageFilter,
        settings: ReplicaSettings,
        journal_settings: JournalSettings,
        watch: LogWatch,
        *,
        drift_permille: int,
        founders: tuple[Member, ...],
    ) -> None:
        disk = SimDisk(Random(random.getrandbits(64)), capacity_bytes=DISK_BYTES)
        super().__init__(name, agenda, trace, random, disk, lives, drift_permille)
        self.network = network
        self._message_filter = message_filter
        self.settings = settings
        self._journal_settings = journal_settings
        self._watch = watch
        self._founders = founders
        self.keeper: Keeper | None = None

    # The process.

    @property
    def reachable(self) -> bool:
        return self.keeper is not None

    @property
    def replica(self) -> Replica | None:
        """The replica; None while the keeper reads its store."""
        return self.keeper.replica if self.keeper is not None and self.keeper.runs_replica else None

    @property
    def journal(self) -> Journal:
        assert self.keeper is not None
        return self.keeper.journal

    @property
    def late_ms(self) -> int:
        assert self.keeper is not None
        return self.steady.now_ms() - self.keeper.log.now_ms

    def start(self) -> None:
        assert self.keeper is None
        self.begin_life()
        self._trace.say(self.name, "starts")
        journal = Journal(self._journal_settings, node_name=NodeName(self.name), new_cluster_id=CLUSTER)
        own = Random(self._random.getrandbits(64))
        self.keeper = Keeper(self.name, self.settings, journal, own, self._founders, self)
        self.keeper.log.now_ms = self.steady.now_ms()
        self.submit(journal.take_requests())
        self._agenda.after(self._tick_ms, self.in_life(self._tick))

    def crash(self, loss: Loss) -> None:
        self._trace.say(self.name, "is killed" if loss is Loss.NONE else f"loses power: unsynced {loss.value} lost")
        self._end(None, loss)

    def abandon_store(self) -> None:
        if self.keeper is not None:
            self._end(None, Loss.ALL)
        self._founders = ()

    def _end(self, fault: StoreFault | None, loss: Loss) -> None:
        keeper = self.keeper
        assert keeper is not None
        if keeper.runs_replica:
            self._founders = ()
        self.keeper = None
        self.wake_up()
        self.disk.crash(loss)
        self.network.went(self.name, told=loss is Loss.NONE)
        self._watch.ended(self, fault)

    # Inputs. The keeper is given the time before each of them.

    def _do(self, call: Callable[[Keeper], None]) -> None:
        keeper = self.keeper
        assert keeper is not None
        keeper.tick(self.steady.now_ms())
        if self.keeper is keeper:
            call(keeper)
        if self.keeper is keeper:
            self.submit(keeper.journal.take_requests())
            self._watch.stepped(self)

    def linked(self, peer: str) -> None:
        self.do(lambda keeper: keeper.log.connected(peer))

    def unlinked(self, peer: str, *, by_peer: bool) -> None:
        self.do(lambda keeper: keeper.log.disconnected(peer, by_peer=by_peer))

    def delivered(self, peer: str, data: bytes) -> None:
        def take(keeper: Keeper) -> None:
            self._trace.crossed(self._border, data)
            keeper.received(peer, data)

        self.do(take)

    def do(self, call: Callable[[Keeper], None]) -> None:
        """Carries out an input from the network, an operator or a client."""
        self.in_life(lambda: self._do(call))()

    @property
    def _tick_ms(self) -> int:
        return max(1, self.settings.lease_ms // TICKS_PER_LEASE)

    def _tick(self) -> None:
        self._do(lambda keeper: None)
        self._agenda.after(self._tick_ms, self.in_life(self._tick))

    def completed(self, completions: list[Completion]) -> None:
        keeper = self.keeper
        assert keeper is not None
        try:
            if not keeper.disk_completed(completions):
                # The journal continues its work, and has no other report.
                self.submit(keeper.journal.take_requests())
                return
            self._do(lambda keeper: keeper.hear_journal())
        except StoreFault as fault:
            self._trace.say(self.name, f"ends: {fault}")
            self._end(fault, self._random.choice((Loss.NONE, Loss.SOME)))

    # Reports of the keeper.

    def told(self, keeper: Keeper, effect: Effect) -> None:
        self._watch.told(self, effect)

    def send(self, keeper: Keeper, peer: str, data: bytes) -> None:
        self._message_filter.send(self.name, peer, data)

    def replaced(self, keeper: Keeper, reason: str) -> None:
        self._trace.say(self.name, reason)
        self._agenda.after(0, self.in_life(self._begin_again))

    def _begin_again(self) -> None:
        """Opens the store again in the same process."""
        self._founders = ()
        self._end(None, Loss.NONE)
        if self.keeper is None:
            self.start()
