"""The world of one seed with one broker: its machine, its clients, its faults, and the final count.

    faults    clients work, machines die and restart
    healing   the faults have ended: every client receives its answers, within a bounded time
    counting  the clients leave, the queues are emptied, and the checkers inspect the whole

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
from pandomq.sim.campaigns.outcome import WorldOutcome, outcome_of
from pandomq.sim.campaigns.reduction import Reduction
from pandomq.sim.checkers import brokers_equal
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
from pandomq.sim.clients.administration.configurer import Configurer
from pandomq.sim.clients.administration.tracer import Tracer
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.consumer import ConsumingClient
from pandomq.sim.clients.data_port.lessee import Lessee
from pandomq.sim.clients.data_port.stager import Stager
from pandomq.sim.clients.declarer import Declarer
from pandomq.sim.clients.drainer import Drainer
from pandomq.sim.clients.named_publisher import NamedPublisher
from pandomq.sim.clients.publisher import Publisher
from pandomq.sim.clients.stream_reader import StreamConsumer, StreamDrainer
from pandomq.sim.clients.transactor import Transactor
from pandomq.sim.disks.disk import DiskPace, SimDisk
from pandomq.sim.disks.files import Loss
from pandomq.sim.faults import WorldFaults
from pandomq.sim.features.catalogue import draw_features
from pandomq.sim.features.feature import Feature
from pandomq.sim.ledger import BrokenPromise, WorldLedger
from pandomq.sim.machine import Machine
from pandomq.sim.machine_faults import KILL
from pandomq.sim.network.byte_network import ByteNetwork
from pandomq.sim.observer import WorldObserver
from pandomq.sim.queues import DEAD_LETTERS, LEASED, NUMBERED, PLAIN, PROOF, RIVER, STREAM, WHOLE, QueueKind, draw_kinds
from pandomq.sim.scene import Scene
from pandomq.sim.trace import WorldTrace

PROGRESS_MS: Final = 20_000
"""The time after the end of the faults within which every client must have received its answers."""
STREAMS_CHANCE: Final = 0.25
CHURN_SEED_MIN: Final = 500
"""Lower seeds keep the course that once broke a promise."""
CHURN_SEEDS: Final = 8
CHURN_SEED: Final = 5
"""One of CHURN_SEEDS seeds churns: the one with this remainder."""
DISK_BYTES: Final = 8 * 2**20
SETTINGS: Final = NodeSettings(name="n1", password_log_cost=1)
PAGING_BYTES: Final = (1 * KIB, 4 * KIB, 64 * KIB)
"""The memory for messages, selected by the seed; with the largest value hardly any message leaves memory."""


def churns(seed: int) -> bool:
    """Whether this world is about changes of the configuration, and restarts that might revert them."""
    return seed >= CHURN_SEED_MIN and seed % CHURN_SEEDS == CHURN_SEED


def has_streams(seed: int) -> bool:
    """Whether the world has streams, and publishers that number their messages."""
    # With the number 26, seeds that once broke a promise keep their course.
    return Random(f"streams 26 {seed}").random() < STREAMS_CHANCE


class World:
    lengths_ms: tuple[int, ...] = (300, 1_000, 2_500)
    """Possible lengths of the time of faults."""
    nodes: int = 1
    founded: bool = True
    """The brokers begin with stores that belong to a cluster."""

    def __init__(
        self,
        seed: int,
        show: Callable[[str], None] | None = None,
        *,
        traced: bool = False,
        reduction: Reduction | None = None,
    ) -> None:
        """With `traced`, messages are traced most of the time; the seed then takes another course. Parts that the
        reduction leaves out are built like all others, and then do not take part."""
        self.seed = seed
        self.random = random = self._first_random()
        self.agenda = Agenda()
        self.trace = WorldTrace(self.agenda, show)
        self.ledger = WorldLedger()
        self.machines: list[Machine] = []
        self._configuration = ConfigurationKept(self.ledger)
        self._confirmed_kept = ConfirmedKept(self.ledger)
        self._order = InOrder(self.ledger)
        self._redelivered = RedeliveredSaysSo(self.ledger)
        self._kinds_kept = KindsKept(self.ledger)
        self.streams_kept = StreamsKept(self.ledger)
        checkers: list[Checker] = [
            AckedGone(self.ledger),
            self._redelivered,
            self._order,
            TransactionsWhole(self.ledger),
            self._confirmed_kept,
            self._kinds_kept,
            self.streams_kept,
            self._configuration,
            Invariants(self.ledger),
            TracesWhole(self.ledger),
            *self._more_checkers(),
        ]
        self.observer = WorldObserver(self.ledger)
        self.scene = Scene(self.agenda, self.trace, random, self.ledger, self.observer, reduction)
        self.scene.machines = self.machines
        self.streams = [STREAM, RIVER] if has_streams(seed) else []
        self.features = draw_features(self)
        for feature in self.features:
            checkers += feature.checkers()
        self.observer.watch_with(checkers)
        self._lives = itertools.count(1)
        self._discontent: SimulatedClient | None = None
        """The client that was waiting at the last check."""
        self._unhealed: Feature | None = None
        """The feature that was not healed at the last check."""
        self._make_machines()
        self._leave_out_machines()
        self.kinds = self._draw_kinds()
        if any(kind.dead_letters_to for kind in self.kinds):
            self.kinds.append(DEAD_LETTERS)
        if self.streams:
            self.kinds += (NUMBERED, LEASED)
        # Clients of a feature use its queues; the others choose among the queues that exist without it.
        of_features = [kind for feature in self.features for kind in feature.queues()]
        for kind in (*self.kinds, *self.streams, PROOF, *of_features):
            self.ledger.kinds[kind.name] = kind
        self.clients = self._make_clients()
        if self.streams:
            self.clients += self._make_readers()
        for kind in of_features:
            (self.streams if kind.stream else self.kinds).append(kind)
        for feature in self.features:
            self.clients += feature.clients()
        if traced:
            self.clients.append(Tracer(self.scene))
        self.faults = self._make_faults(Random(random.getrandbits(64)))
        if churns(seed) and KILL not in self.faults.kinds:
            self.faults.kinds.append(KILL)
        for feature in self.features:
            feature.join_faults(self.faults)
        self.observer.on_ended = self.faults.ended
        self.observer.on_opened = lambda _: self.scene.root_serves()
        self._leave_out_clients()
        self._faults_ms = 0

    # Parts that worlds of several brokers override.

    def _first_random(self) -> Random:
        return Random(self.seed)

    def _more_checkers(self) -> Sequence[Checker]:
        return ()

    def _draw_kinds(self) -> list[QueueKind]:
        return draw_kinds(self.random)

    def _make_machines(self) -> None:
        # A network with one machine carries nothing.
        network = ByteNetwork(self.agenda, Random(0))
        self.machines.append(self._make_machine("n1", SETTINGS, network))

    def _leave_out_machines(self) -> None:
        self.scene.machine_names = [machine.name for machine in self.machines]
        for machines in (self.machines, self.scene.secondaries):
            machines[:] = [machine for machine in machines if self.scene.reduction.keeps_machine(machine.name)]

    def _leave_out_clients(self) -> None:
        kept = [client for client in self.clients if self.scene.reduction.keeps_client(client.name)]
        self._client_names = tuple(client.name for client in kept)
        if len(kept) < len(self.clients):
            kept.append(Declarer(self.scene, (*self.kinds, *self.streams)))
        # Faults still choose from the whole list.
        self.clients = kept

    def _make_faults(self, random: Random) -> WorldFaults:
        return WorldFaults(self.scene, self.clients, random)

    @property
    def machine(self) -> Machine:
        """The machine that serves, or that served last."""
        return self.machines[0]

    # The parts of the world.

    def _make_machine(
        self, name: str, settings: NodeSettings, network: ByteNetwork, drift_permille: int = 0
    ) -> Machine:
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
        for feature in self.features:
            settings = feature.adjust(settings)
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

    def _make_clients(self) -> list[SimulatedClient]:
        random, scene = self.random, self.scene
        clients: list[SimulatedClient] = []
        # A swept kind has at least one publisher and one consumer: a queue that is always empty, or that is never
        # consumed, proves nothing.
        swept = [kind for kind in self.kinds if kind.swept]
        alive = [kind for kind in self.kinds if kind is not DEAD_LETTERS]
        for number in range(random.randint(1, 3)):
            kind = random.choice(swept if swept and not number else alive)
            clients.append(Publisher(scene, f"publisher-{number}", [kind], "", random.randint(10, 120)))
        for number in range(random.randint(1, 3)):
            kind = random.choice(swept if swept and not number else self.kinds)
            clients.append(ConsumingClient(scene, f"consumer-{number}", kind))
        targets: list[QueueKind] = [WHOLE, PLAIN]
        clients.append(Transactor(scene, "transactor", targets, random.randint(2, 25)))
        configurer = Configurer(scene, "configurer", random.choice((5, 30, 200)))
        if churns(self.seed):
            configurer.churn()
        self._configuration.configurer = configurer
        clients.append(configurer)
        return clients

    def _make_readers(self) -> list[SimulatedClient]:
        """Makes the readers of streams, and their writers."""
        random, scene = self.random, self.scene
        clients: list[SimulatedClient] = [
            Publisher(scene, "writer", [random.choice(self.streams)], "", random.randint(20, 120)),
            NamedPublisher(scene, "named-1", STREAM, random.randint(10, 80)),
            NamedPublisher(scene, "named-2", NUMBERED, random.randint(10, 60)),
            ConsumingClient(scene, "consumer-of-numbered", NUMBERED),
            Stager(scene, "stager", STREAM, random.randint(2, 8)),
            Publisher(scene, "publisher-of-leased", [LEASED], "", random.randint(20, 100)),
            Lessee(scene, "lessee", LEASED),
        ]
        if random.random() < 0.3:
            # It leaves little to lease.
            clients.append(ConsumingClient(scene, "consumer-of-leased", LEASED))
        for number in range(random.randint(1, 3)):
            kind = STREAM if not number else random.choice(self.streams)
            clients.append(StreamConsumer(scene, f"reader-{number}", kind, self.streams_kept))
        return clients

    # The course of the world.

    def run(self) -> WorldOutcome:
        return outcome_of(
            self.seed, self.trace, self.agenda, self._live, self._counts, self.faults.strikes, self._course
        )

    def _course(self) -> Reduction:
        return Reduction(
            clients=self._client_names,
            machines=tuple(machine.name for machine in (*self.machines, *self.scene.secondaries)),
            strikes=tuple(self.faults.strikes.names),
            features=tuple(feature.name for feature in self.features),
            faults_ms=min(self._faults_ms, self.agenda.now_ms),
        )

    def _counts(self) -> tuple[int, int]:
        return len(self.ledger.messages), next(self._lives) - 1

    def _live(self) -> None:
        agenda, random = self.agenda, self.random
        self.trace.say("world", f"queues: {', '.join(kind.name for kind in (*self.kinds, *self.streams))}")
        self.trace.say("world", f"faults: {', '.join(self.faults.kinds)}")
        if self.features:
            self.trace.say("world", f"features: {', '.join(feature.name for feature in self.features)}")
        self._begin()
        for client in self.clients:
            agenda.after(client.random.randint(0, 50), client.connect)
        self.faults.begin()
        self._faults_ms = self.scene.reduction.length_ms(random.choice(self.lengths_ms))
        agenda.run(self._faults_ms)
        self.faults.end()
        self._heal()
        self._count()

    def _begin(self) -> None:
        self.machine.start()

    def _heal(self) -> None:
        self._await("a broker that serves", lambda: self.machine.serving)
        for client in self.clients:
            client.end_wish()
        self._await("answers for everybody", self._is_everybody_content)
        if self.features:
            patience_ms = PROGRESS_MS + sum(feature.patience_ms for feature in self.features)
            self._await("what features wait for", self._are_features_healed, patience_ms)

    def _is_everybody_content(self) -> bool:
        """Called after each event: most of the time the same client is still waiting."""
        if self._discontent is not None and not self._discontent.content:
            return False
        self._discontent = next((client for client in self.clients if not client.content), None)
        return self._discontent is None

    def _are_features_healed(self) -> bool:
        """Called after each event, as above."""
        if self._unhealed is not None and not self._unhealed.healed():
            return False
        self._unhealed = next((feature for feature in self.features if not feature.healed()), None)
        return self._unhealed is None

    def _count(self) -> None:
        self.scene.ending = True
        for client in self.clients:
            client.leave()
        self._await("disconnection of all clients", lambda: all(client.gone for client in self.clients))
        if self.random.random() < 0.5:
            # Only what a power loss has left is counted.
            self._lose_power()
            self._await("a broker that serves", lambda: self.machine.serving)
        self._compare()
        self._look_into("empty queues", Drainer(self.scene, self.kinds))
        for kind in self.streams:
            self._look_into(f"all of {kind.name}", StreamDrainer(self.scene, "drainer", kind, self.streams_kept))
        self.observer.finished(self.machine)
        self._close()

    def _look_into(self, what: str, client: SimulatedClient) -> None:
        client.connect()
        self._await(what, lambda: client.content)
        client.leave()
        self._await("disconnection of all clients", lambda: client.gone)

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
        """No client changes anything: all copies of the state should be equal."""
        self._await("rest", lambda: self.machine.node is not None and self.machine.node.broker.at_rest)
        brokers_equal.check_restored(self.machine)
        for feature in self.features:
            feature.compare([*self.machines, *self.scene.secondaries], self.machine)

    def _await(self, what: str, over: Callable[[], bool], patience_ms: int = PROGRESS_MS) -> None:
        self.trace.say("world", f"awaits {what}")
        if not self.agenda.run(self.agenda.now_ms + patience_ms, over):
            # In the end clients are to leave, and a subscriber that has left is no longer content.
            ending = self.scene.ending
            waiting = [client.name for client in self.clients if not (client.gone if ending else client.content)]
            raise BrokenPromise("progress", f"no {what} after {patience_ms} ms; waiting: {', '.join(waiting)}")
