"""One seed's world with one broker: its machine, its clients, its faults, and the end, when everything is counted.

    faults    clients work, machines die and come back
    healing   nothing goes wrong any more: everybody gets what they waited for, within a bounded time
    counting  the clients leave, the queues are emptied, and the checkers look at the whole

Everything in it happens in one thread, and follows from the seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec

from pandomq.journal.limits import JournalSettings
from pandomq.limits import KIB
from pandomq.node.settings import NodeSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.checkers.acked_gone import AckedGone
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.checkers.configuration import ConfigurationKept
from pandomq.sim.checkers.confirmed_kept import ConfirmedKept
from pandomq.sim.checkers.invariants import Invariants
from pandomq.sim.checkers.kinds import KindsKept
from pandomq.sim.checkers.order import InOrder
from pandomq.sim.checkers.redelivered import RedeliveredSaysSo
from pandomq.sim.checkers.streams import StreamsKept
from pandomq.sim.checkers.traces import TracesWhole
from pandomq.sim.checkers.transactions import TransactionsWhole
from pandomq.sim.clients.client import Client
from pandomq.sim.clients.configurer import Configurer
from pandomq.sim.clients.consumer import Consumer
from pandomq.sim.clients.drainer import Drainer
from pandomq.sim.clients.lessee import Lessee
from pandomq.sim.clients.named_publisher import NamedPublisher
from pandomq.sim.clients.publisher import Publisher
from pandomq.sim.clients.stager import Stager
from pandomq.sim.clients.stream_reader import StreamDrainer, StreamReader
from pandomq.sim.clients.tracer import Tracer
from pandomq.sim.clients.transactor import Transactor
from pandomq.sim.disk import DiskPace, SimDisk
from pandomq.sim.faults import KILL, Faults
from pandomq.sim.files import Loss
from pandomq.sim.ledger import BrokenPromise, Ledger
from pandomq.sim.machine import Machine
from pandomq.sim.network import Network, Weather
from pandomq.sim.observer import Observer
from pandomq.sim.outcome import Outcome, outcome_of
from pandomq.sim.queues import DEAD_LETTERS, LEASED, NUMBERED, PLAIN, PROOF, RIVER, STREAM, WHOLE, QueueKind, draw_kinds
from pandomq.sim.scene import Scene
from pandomq.sim.trace import Trace

PROGRESS_MS: Final = 20_000
"""Within so much time after the faults have ended everybody has had an answer."""
STREAMS_CHANCE: Final = 0.25
CHURN_SEED_MIN: Final = 500
"""Seeds below it keep the course that once broke something."""
CHURN_SEEDS: Final = 8
CHURN_SEED: Final = 5
"""One of so many, and which."""
DISK_BYTES: Final = 8 * 2**20
SETTINGS: Final = NodeSettings(name="n1", password_log_cost=1)
PAGING_BYTES: Final = (1 * KIB, 4 * KIB, 64 * KIB)
"""What messages may take of memory, in one seed after the other: in the last next to none ever leaves it."""


def churns(seed: int) -> bool:
    """Whether this world is about changes of the configuration, and restarts that might undo them."""
    return seed >= CHURN_SEED_MIN and seed % CHURN_SEEDS == CHURN_SEED


def has_streams(seed: int) -> bool:
    """And publishers who number their messages."""
    # With this number seeds that once broke something keep the course that did.
    return Random(f"streams 26 {seed}").random() < STREAMS_CHANCE


class World:
    lengths_ms: tuple[int, ...] = (300, 1_000, 2_500)
    """Of the time of faults."""

    def __init__(self, seed: int, show: Callable[[str], None] | None = None, *, traced: bool = False) -> None:
        """`traced`: messages are, most of the time; then the seed takes another course."""
        self.seed = seed
        self.random = random = self._first_random()
        self.agenda = Agenda()
        self.trace = Trace(self.agenda, show)
        self.ledger = Ledger()
        self.machines: list[Machine] = []
        self._configuration = ConfigurationKept(self.ledger)
        self._confirmed_kept = ConfirmedKept(self.ledger)
        self._order = InOrder(self.ledger)
        self._redelivered = RedeliveredSaysSo(self.ledger)
        self._kinds_kept = KindsKept(self.ledger)
        self._streams_kept = StreamsKept(self.ledger)
        checkers: list[Checker] = [
            AckedGone(self.ledger),
            self._redelivered,
            self._order,
            TransactionsWhole(self.ledger),
            self._confirmed_kept,
            self._kinds_kept,
            self._streams_kept,
            self._configuration,
            Invariants(self.ledger),
            TracesWhole(self.ledger),
            *self._more_checkers(),
        ]
        self.observer = Observer(self.ledger, checkers)
        self.scene = Scene(self.agenda, self.trace, random, self.ledger, self.observer)
        self.scene.machines = self.machines
        self._lives = itertools.count(1)
        self._make_machines()
        self.kinds = self._draw_kinds()
        if any(kind.dead_letters_to for kind in self.kinds):
            self.kinds.append(DEAD_LETTERS)
        self.streams = [STREAM, RIVER] if has_streams(seed) else []
        if self.streams:
            self.kinds += (NUMBERED, LEASED)
        for kind in (*self.kinds, *self.streams, PROOF):
            self.ledger.kinds[kind.name] = kind
        self.clients = self._make_clients()
        if self.streams:
            self.clients += self._make_readers()
        if traced:
            self.clients.append(Tracer(self.scene))
        self.faults = self._make_faults(Random(random.getrandbits(64)))
        if churns(seed) and KILL not in self.faults.kinds:
            self.faults.kinds.append(KILL)
        self.observer.on_ended = self.faults.ended

    # What worlds of several brokers do in another way.

    def _first_random(self) -> Random:
        return Random(self.seed)

    def _more_checkers(self) -> Sequence[Checker]:
        return ()

    def _draw_kinds(self) -> list[QueueKind]:
        return draw_kinds(self.random)

    def _make_machines(self) -> None:
        # A network with one station carries nothing.
        network = Network(self.agenda, Random(0), Weather(), patience_ms=1)
        self.machines.append(self._make_machine("n1", SETTINGS, network))

    def _make_faults(self, random: Random) -> Faults:
        return Faults(self.scene, self.clients, random)

    @property
    def machine(self) -> Machine:
        """The one that serves, or did last."""
        return self.machines[0]

    # What there is.

    def _make_machine(self, name: str, settings: NodeSettings, network: Network, drift_permille: int = 0) -> Machine:
        random = self.random
        journal = JournalSettings(
            segment_bytes=random.choice((8, 16, 64)) * KIB,
            snapshot_log_bytes=random.choice((8, 32, 128)) * KIB,
            disk_free_bytes_min=64 * KIB,
            reserve_bytes=32 * KIB,
            replay_chunk_bytes=4 * KIB,
            bulk_chunk_bytes=4 * KIB,
            bulk_sync_bytes=16 * KIB,
            page_file_bytes=16 * KIB,
        )
        pace = random.choice((DiskPace(), DiskPace(sync_us=(5_000, 30_000)), DiskPace(stall_chance=0.001)))
        disk = SimDisk(Random(random.getrandbits(64)), pace=pace, capacity_bytes=DISK_BYTES)
        own = Random(random.getrandbits(64))
        settings = msgspec.structs.replace(
            settings, name=name, paging_bytes=PAGING_BYTES[self.seed % len(PAGING_BYTES)]
        )
        return Machine(
            name,
            self.agenda,
            self.trace,
            own,
            disk,
            settings,
            journal,
            self.observer,
            self._lives,
            network,
            drift_permille=drift_permille,
        )

    def _make_clients(self) -> list[Client]:
        random, scene = self.random, self.scene
        clients: list[Client] = []
        # What is swept has at least one of each: an empty queue, or one that nobody looks at, shows nothing.
        swept = [kind for kind in self.kinds if kind.swept]
        alive = [kind for kind in self.kinds if kind is not DEAD_LETTERS]
        for number in range(random.randint(1, 3)):
            kind = random.choice(swept if swept and not number else alive)
            clients.append(Publisher(scene, f"publisher-{number}", [kind], "", random.randint(10, 120)))
        for number in range(random.randint(1, 3)):
            kind = random.choice(swept if swept and not number else self.kinds)
            clients.append(Consumer(scene, f"consumer-{number}", kind))
        targets: list[QueueKind] = [WHOLE, PLAIN]
        clients.append(Transactor(scene, "transactor", targets, random.randint(2, 25)))
        configurer = Configurer(scene, "configurer", random.choice((5, 30, 200)))
        if churns(self.seed):
            configurer.churn()
        self._configuration.configurer = configurer
        clients.append(configurer)
        return clients

    def _make_readers(self) -> list[Client]:
        """Of streams, and who writes them."""
        random, scene = self.random, self.scene
        clients: list[Client] = [
            Publisher(scene, "writer", [random.choice(self.streams)], "", random.randint(20, 120)),
            NamedPublisher(scene, "named-1", STREAM, random.randint(10, 80)),
            NamedPublisher(scene, "named-2", NUMBERED, random.randint(10, 60)),
            Consumer(scene, "consumer-of-numbered", NUMBERED),
            Stager(scene, "stager", STREAM, random.randint(2, 8)),
            Publisher(scene, "publisher-of-leased", [LEASED], "", random.randint(20, 100)),
            Lessee(scene, "lessee", LEASED),
        ]
        if random.random() < 0.3:
            # It leaves little to be leased.
            clients.append(Consumer(scene, "consumer-of-leased", LEASED))
        for number in range(random.randint(1, 3)):
            kind = STREAM if not number else random.choice(self.streams)
            clients.append(StreamReader(scene, f"reader-{number}", kind, self._streams_kept))
        return clients

    # The course of it.

    def run(self) -> Outcome:
        return outcome_of(self.seed, self.trace, self.agenda, self._live, self._counts, self.faults.struck)

    def _counts(self) -> tuple[int, int]:
        return len(self.ledger.messages), next(self._lives) - 1

    def _live(self) -> None:
        agenda, random = self.agenda, self.random
        self.trace.say("world", f"queues: {', '.join(kind.name for kind in (*self.kinds, *self.streams))}")
        self.trace.say("world", f"faults: {', '.join(self.faults.kinds)}")
        self._begin()
        for client in self.clients:
            agenda.after(random.randint(0, 50), client.connect)
        self.faults.begin()
        agenda.run(random.choice(self.lengths_ms))
        self.faults.end()
        self._heal()
        self._count()

    def _begin(self) -> None:
        self.machine.start()

    def _heal(self) -> None:
        self._await("a broker that serves", lambda: self.machine.serving)
        for client in self.clients:
            client.end_wish()
        self._await("answers for everybody", lambda: all(client.content for client in self.clients))

    def _count(self) -> None:
        self.scene.ending = True
        for client in self.clients:
            client.leave()
        self._await("everybody's farewell", lambda: all(client.gone for client in self.clients))
        if self.random.random() < 0.5:
            # What is counted is what a power loss has left.
            self._lose_power()
            self._await("a broker that serves", lambda: self.machine.serving)
        self._compare()
        self._look_into("empty queues", Drainer(self.scene, self.kinds))
        for kind in self.streams:
            self._look_into(f"all of {kind.name}", StreamDrainer(self.scene, "drainer", kind, self._streams_kept))
        self.observer.finished(self.machine)
        self._close()

    def _look_into(self, what: str, client: Client) -> None:
        client.connect()
        self._await(what, lambda: client.content)
        client.leave()
        self._await("everybody's farewell", lambda: client.gone)

    def _close(self) -> None:
        self.faults.closing = True
        self._shut_down(self.machines)

    def _shut_down(self, machines: list[Machine]) -> None:
        if not all(machine.reachable for machine in machines):
            self._await("everybody", lambda: all(machine.reachable for machine in machines))
        for machine in machines:
            machine.shut_down()
        self._await("a clean end", lambda: not any(machine.up for machine in machines))

    def _lose_power(self) -> None:
        self.machine.crash(Loss.SOME)

    def _compare(self) -> None:
        """Nobody changes anything: what there is more than once should be the same."""

    def _await(self, what: str, over: Callable[[], bool]) -> None:
        self.trace.say("world", f"awaits {what}")
        if not self.agenda.run(self.agenda.now_ms + PROGRESS_MS, over):
            waiting = [client.name for client in self.clients if not client.content]
            raise BrokenPromise("progress", f"no {what} after {PROGRESS_MS} ms; waiting: {', '.join(waiting)}")
