"""One machine of a world of logs: a disk, a clock that drifts, and now and then a keeper's process."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.faults import StoreFault
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.replica.effects import Effect
from pandomq.replica.membership import Member
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.disk import NEVER_MS, SimDisk
from pandomq.sim.files import Loss
from pandomq.sim.logs.keeper import Keeper
from pandomq.sim.logs.post import Post
from pandomq.sim.network import Network
from pandomq.sim.trace import Trace

CLUSTER: Final = ClusterId("5f0c4a56-2a7e-4b8c-9d5e-7a1f3c9b2e10")
TICKS_PER_LEASE: Final = 10


class LogWatch(Protocol):
    """Who looks on."""

    def told(self, machine: LogMachine, effect: Effect) -> None: ...

    def stepped(self, machine: LogMachine) -> None: ...

    def ended(self, machine: LogMachine, fault: StoreFault | None) -> None: ...


class LogMachine:
    def __init__(
        self,
        name: str,
        agenda: Agenda,
        trace: Trace,
        random: Random,
        network: Network,
        post: Post,
        settings: ReplicaSettings,
        journal_settings: JournalSettings,
        watch: LogWatch,
        *,
        drift_permille: int,
        founders: tuple[Member, ...],
    ) -> None:
        self.name = name
        self._agenda = agenda
        self._trace = trace
        self._border = name.encode()
        self._random = random
        self.network = network
        self._post = post
        self.settings = settings
        self._journal_settings = journal_settings
        self._watch = watch
        self._speed_permille = 1000 + drift_permille
        self._clock_base_ms, self._clock_since_ms = 1_000, 0
        self._founders = founders
        self.disk = SimDisk(Random(random.getrandbits(64)), capacity_bytes=64 * 2**20)
        self.keeper: Keeper | None = None
        self.life = 0
        self.paused_until_ms = 0
        self._disk_due_ms = NEVER_MS
        self._links: set[str] = set()
        self.lost = False
        """Its disk lost something that had been synced, and it has not got it back yet."""

    # The clock.

    def now_ms(self) -> int:
        passed_ms = self._agenda.now_ms - self._clock_since_ms
        return self._clock_base_ms + passed_ms * self._speed_permille // 1000

    def run_clock(self, speed_permille: int) -> None:
        """From now on it goes at this speed."""
        self._clock_base_ms, self._clock_since_ms = self.now_ms(), self._agenda.now_ms
        self._speed_permille = speed_permille

    # The process.

    @property
    def reachable(self) -> bool:
        return self.keeper is not None

    @property
    def awake(self) -> bool:
        return self.keeper is not None and self._agenda.now_ms >= self.paused_until_ms

    def start(self) -> None:
        assert self.keeper is None
        self.life += 1
        self._trace.say(self.name, "starts")
        self._disk_due_ms = NEVER_MS
        journal = Journal(self._journal_settings, node_name=NodeName(self.name), new_cluster_id=CLUSTER)
        own = Random(self._random.getrandbits(64))
        self.keeper = Keeper(self.name, self.settings, journal, own, self._founders, self)
        self.keeper.now_ms = self.now_ms()
        self._submit()
        self._agenda.after(self._tick_ms, self._in_life(self._tick))

    def crash(self, loss: Loss) -> None:
        self._trace.say(self.name, "is killed" if loss is Loss.NONE else f"loses power: unsynced {loss.value} lost")
        self._end(None, loss)

    def wipe(self) -> None:
        """Its disk is replaced by an empty one."""
        self._trace.say(self.name, "gets an empty disk")
        if self.keeper is not None:
            self._end(None, Loss.ALL)
        self.disk.wipe()
        self._founders = ()
        self.lost = True

    def _end(self, fault: StoreFault | None, loss: Loss) -> None:
        keeper = self.keeper
        assert keeper is not None
        if keeper.runs:
            self._founders = ()
        self.keeper = None
        self.paused_until_ms = 0
        self._links.clear()
        self.disk.crash(loss)
        self.network.went(self.name, told=loss is Loss.NONE)
        self._watch.ended(self, fault)

    def pause(self, for_ms: int) -> None:
        self._trace.say(self.name, f"does nothing for {for_ms} ms")
        self.paused_until_ms = self._agenda.now_ms + for_ms

    def _when_running(self, call: Callable[[], None]) -> None:
        if self._agenda.now_ms < self.paused_until_ms:
            self._agenda.at(self.paused_until_ms, lambda: self._when_running(call))
        else:
            call()

    def _in_life(self, call: Callable[[], None]) -> Callable[[], None]:
        life = self.life

        def called() -> None:
            if self.life == life and self.keeper is not None:
                call()

        return lambda: self._when_running(called)

    # Inputs. Each is told the time first.

    def _do(self, call: Callable[[Keeper], None]) -> None:
        keeper = self.keeper
        assert keeper is not None
        keeper.tick(self.now_ms())
        if self.keeper is keeper:
            call(keeper)
        if self.keeper is keeper:
            self._submit()
            self._watch.stepped(self)

    def linked(self, peer: str) -> None:
        self._links.add(peer)
        self._in_life(lambda: self._do(lambda keeper: keeper.linked(peer)))()

    def unlinked(self, peer: str, *, by_peer: bool) -> None:
        self._links.discard(peer)
        self._in_life(lambda: self._do(lambda keeper: keeper.unlinked(peer, by_peer=by_peer)))()

    def delivered(self, peer: str, data: bytes) -> None:
        def take() -> None:
            self._trace.crossed(self._border, data)
            self._do(lambda keeper: keeper.received(peer, data))

        self._in_life(take)()

    def do(self, call: Callable[[Keeper], None]) -> None:
        """What a person or a client asks for."""
        self._in_life(lambda: self._do(call))()

    @property
    def _tick_ms(self) -> int:
        return max(1, self.settings.lease_ms // TICKS_PER_LEASE)

    def _tick(self) -> None:
        self._do(lambda keeper: None)
        self._agenda.after(self._tick_ms, self._in_life(self._tick))

    # The disk.

    def disk_hurries(self) -> None:
        self.disk.hurry(self._agenda.now_ms)
        if self.keeper is not None:
            self._await_disk()

    def _submit(self) -> None:
        assert self.keeper is not None
        requests = self.keeper.journal.take_requests()
        if requests:
            self._trace.asked(self._border, requests)
            self.disk.submit(requests, self._agenda.now_ms)
        self._await_disk()

    def _await_disk(self) -> None:
        due_ms = self.disk.next_ms
        if due_ms < self._disk_due_ms:
            self._disk_due_ms = due_ms
            self._agenda.at(due_ms, self._in_life(self._disk_ready))

    def _disk_ready(self) -> None:
        self._disk_due_ms = NEVER_MS
        finished = self.disk.take_completions(self._agenda.now_ms)
        if not finished:
            self._await_disk()
            return
        ran = self.keeper is not None and self.keeper.runs
        try:
            self._do(lambda keeper: keeper.disk_completed(finished))
        except StoreFault as fault:
            self._trace.say(self.name, f"ends: {fault}")
            self._end(fault, self._random.choice((Loss.NONE, Loss.SOME)))
            return
        if not ran and self.keeper is not None and self.keeper.runs:
            # Links that were made while it was reading its store.
            for peer in sorted(self._links):
                self._do(lambda keeper, peer=peer: keeper.linked(peer))  # type: ignore[misc]

    # What the keeper says.

    def told(self, keeper: Keeper, effect: Effect) -> None:
        self._watch.told(self, effect)

    def send(self, keeper: Keeper, peer: str, data: bytes) -> None:
        self._post.send(self.name, peer, data)

    def replaced(self, keeper: Keeper, reason: str) -> None:
        self._trace.say(self.name, reason)
        self._agenda.after(0, self._in_life(self._begin_again))

    def _begin_again(self) -> None:
        """The same process opens its store anew."""
        self._founders = ()
        self._end(None, Loss.NONE)
        if self.keeper is None:
            self.start()
