"""The state that all brokers of a cluster share: users, vhosts, exchanges, shared queues and their bindings.

It changes by `apply` only, and the same commands in the same order give the same state on every broker. Private queues,
which no other broker knows, live in the same vhosts but are made and deleted without commands; so whatever depends on
them (whether an exchange lost its last binding) is decided on their broker and written to the log as a command of its
own.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from pandomq import kernel
from pandomq.broker.administration.administration_effects import apply_administrative
from pandomq.broker.administration.users import User
from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.exchanges.catalogue import make_exchange
from pandomq.broker.leases.table import LeaseTable
from pandomq.broker.log.commands import (
    BindExchange,
    BindQueue,
    Command,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    LeaseCommand,
    NoteHosts,
    NoteProducers,
    NoteSequences,
    StagingCommand,
    StartBroker,
    StoreOffset,
    TopologyCommand,
    UnbindExchange,
    UnbindQueue,
)
from pandomq.broker.log.term_starts import TermStarts
from pandomq.broker.publishing.delayed import DelayedMessages
from pandomq.broker.publishing.named_producers import NamedProducers
from pandomq.broker.publishing.producers import ProducerTable
from pandomq.broker.queues.queue import Queue
from pandomq.broker.staging.attempts import StagingAttempts
from pandomq.broker.staging.decisions import Decisions
from pandomq.broker.streams.chunk_cache import ChunkCache
from pandomq.broker.streams.stored_offsets import OffsetCounts
from pandomq.broker.vhost import Vhost
from pandomq.fieldtable import decode_table

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.limits import BrokerLimits


class ReplicatedState:
    __slots__ = (
        "_engine",
        "_limits",
        "_random",
        "archived_queues",
        "attempts",
        "changed_queues",
        "chunk_cache",
        "had_users",
        "hosts",
        "leases",
        "logged",
        "named_producers",
        "next_queue_id",
        "offset_counts",
        "password_work_max",
        "producers",
        "staged",
        "term_starts",
        "users",
        "vhosts",
    )

    def __init__(self, engine: kernel.Engine, random: "Random", limits: "BrokerLimits") -> None:
        self._engine = engine
        self._random = random
        self._limits = limits
        self.users: dict[str, User] = {}
        self.had_users = False
        """Whether there has ever been a user. If so, the first user is not created again, even if all users are
        deleted."""
        self.password_work_max = 0
        """The work of the slowest password hash of all users; deleted ones count until this broker restarts."""
        self.chunk_cache = ChunkCache()
        self.offset_counts = OffsetCounts()
        self.vhosts: dict[str, Vhost] = {"/": Vhost("/", engine, limits, self.chunk_cache, self.offset_counts)}
        self.logged: dict[int, tuple[Vhost, Queue | DelayedMessages]] = {}
        """The queue of each id that log records contain."""
        self.next_queue_id = 1
        self.term_starts = TermStarts()
        self.leases = LeaseTable()
        self.producers = ProducerTable(limits.tables)
        self.named_producers = NamedProducers(limits.tables.fenced_connections_max)
        self.staged = Decisions()
        self.hosts: set[str] = set()
        """Brokers that may have clients of their own."""
        self.attempts = StagingAttempts()
        """The staged attempts that are not published."""
        self.archived_queues: list[Queue] = []
        """Streams whose archive has progressed: at the end of the batch they drop what waited for that."""
        self.changed_queues: list[Queue] = []
        """New queues, and those whose policy changed a time setting: the broker sets their timers."""

    @property
    def tables_bytes(self) -> int:
        """An estimate of the memory that clients' names and numbers take: named producers, stored offsets, leases."""
        return self.named_producers.size_bytes + self.offset_counts.size_bytes + self.leases.size_bytes

    def next_sequences(self) -> Iterator[tuple[int, int]]:
        """By queue id: the next numbers, where any was given."""
        for queue_id, (_, owner) in self.logged.items():
            if owner.kernel.next_sequence > 1:
                yield queue_id, owner.kernel.next_sequence

    def apply(self, command: Command) -> None:
        if isinstance(command, TopologyCommand):
            self._apply_topology(self.vhosts[command.vhost], command)
        elif isinstance(command, NoteProducers):
            for producer, number in command.last:
                self.producers.note(producer, number, command.now_ms)
        elif isinstance(command, NoteSequences):
            self.named_producers.apply(command)
        elif isinstance(command, NoteHosts):
            self.hosts.update(command.added)
            self.hosts.difference_update(command.removed)
        elif isinstance(command, StagingCommand):
            self.staged.apply(command)
        elif isinstance(command, StoreOffset):
            self._store_offset(command)
        elif isinstance(command, LeaseCommand):
            self.leases.apply(command)
        elif not isinstance(command, StartBroker):
            apply_administrative(self, command)

    def _apply_topology(self, vhost: Vhost, command: TopologyCommand) -> None:
        match command:
            case DeclareQueue():
                self._declare_queue(vhost, command)
            case DeleteQueue():
                queue = (vhost.inner_queues if command.inner else vhost.queues)[command.name]
                del self.logged[queue.kernel.queue_id]
                self.attempts.remove(queue)
                vhost.remove_queue(queue)
            case DeclareExchange():
                self._declare_exchange(vhost, command)
            case DeleteExchange():
                self._delete_exchange(vhost, command)
            case BindQueue():
                vhost.router.bind(_queue_binding(vhost, command))
            case UnbindQueue():
                self.unbind(vhost, _queue_binding(vhost, command))
            case BindExchange():
                vhost.router.bind(_exchange_binding(vhost, command))
            case UnbindExchange():
                self.unbind(vhost, _exchange_binding(vhost, command))
            case _:
                assert_never(command)

    def _store_offset(self, command: StoreOffset) -> None:
        vhost = self.vhosts.get(command.vhost)
        queue = None if vhost is None else vhost.queues.get(command.stream)
        if queue is not None and queue.stream is not None:
            queue.stream.offsets.store(command.name, command.offset, queue.stream.oldest_offset, command.user)
            if command.name == queue.settings.archive:
                self.archived_queues.append(queue)

    def unbind(self, vhost: Vhost, binding: Binding) -> None:
        """Direct calls are for bindings to private queues, which no other broker knows."""
        if vhost.router.unbind(binding):
            source = vhost.router.exchanges[binding.source]
            if source.auto_delete and not source.binding_count:
                vhost.orphans.append(source)

    def _declare_queue(self, vhost: Vhost, command: DeclareQueue) -> None:
        assert command.name not in (vhost.inner_queues if command.inner else vhost.queues)
        queue = Queue(
            vhost,
            command.name,
            queue_id=command.queue_id,
            durable=command.durable,
            auto_delete=command.auto_delete,
            arguments=decode_table(command.arguments)[0],
            user=command.user,
            now_ms=command.now_ms,
            inner=command.inner,
            honours_replicate=command.honours_replicate,
        )
        self._number(command.queue_id, vhost, queue)
        vhost.add_queue(queue)
        self.attempts.add(queue)
        if queue.settings.expires_ms > 0:
            self.changed_queues.append(queue)

    def _declare_exchange(self, vhost: Vhost, command: DeclareExchange) -> None:
        exchange = make_exchange(
            command.name,
            command.type,
            durable=command.durable,
            auto_delete=command.auto_delete,
            internal=command.internal,
            arguments=decode_table(command.arguments)[0],
            random=self._random,
        )
        if command.waiting_queue_id:
            hidden = kernel.Queue(self._engine, None, command.waiting_queue_id, command.durable)
            hidden.configure(withdrawable=True)
            exchange.waiting = hidden.owner = DelayedMessages(command.name, hidden)
            self._number(command.waiting_queue_id, vhost, exchange.waiting)
        vhost.add_exchange(exchange)

    def _delete_exchange(self, vhost: Vhost, command: DeleteExchange) -> None:
        exchange = vhost.router.exchanges[command.name]
        waiting = exchange.waiting
        if waiting is not None:
            del self.logged[waiting.kernel.queue_id]
            waiting.kernel.delete()
        vhost.orphans += vhost.router.remove(exchange)

    def make_vhost(self, name: str) -> Vhost:
        vhost = self.vhosts[name] = Vhost(name, self._engine, self._limits, self.chunk_cache, self.offset_counts)
        return vhost

    def delete_vhost(self, name: str) -> None:
        vhost = self.vhosts.pop(name)
        self.named_producers.forget_vhost(name)
        self.staged.forget_vhost(name)
        for queue in (*vhost.queues.values(), *vhost.inner_queues.values()):
            # Private queues have no number.
            self.logged.pop(queue.kernel.queue_id, None)
            self.attempts.remove(queue)
        for exchange in vhost.router.exchanges.values():
            if exchange.waiting is not None:
                del self.logged[exchange.waiting.kernel.queue_id]
                exchange.waiting.kernel.delete()
        self.leases.forget_vhost(name)
        vhost.close()

    def _number(self, queue_id: int, vhost: Vhost, queue: Queue | DelayedMessages) -> None:
        assert queue_id not in self.logged
        self.logged[queue_id] = (vhost, queue)
        self.next_queue_id = max(self.next_queue_id, queue_id + 1)


def _queue_binding(vhost: Vhost, command: BindQueue | UnbindQueue) -> Binding:
    arguments = decode_table(command.arguments)[0]
    return Binding.to_queue(command.source, vhost.queues[command.queue], command.routing_key, arguments)


def _exchange_binding(vhost: Vhost, command: BindExchange | UnbindExchange) -> Binding:
    arguments = decode_table(command.arguments)[0]
    destination = vhost.router.exchanges[command.destination]
    return Binding.to_exchange(command.source, destination, command.routing_key, arguments)
