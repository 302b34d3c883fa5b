"""One broker: it handles its clients' requests in batches, and makes proposals to the log.

Pure: time is `now_ms` (milliseconds since 1970), chance is injected, bytes for clients are left in their sessions. For
each batch the caller does, in this order:

    outcome = broker.handle(batch, now_ms)        or broker.tick(now_ms)
    index = append outcome.proposal to the log    (0 if there is none)
    broker.sealed(index)
    broker.committed(index)                       now or later, whenever the log reports it
    write the output of broker.take_dirty()

and again with an empty batch while `broker.active`. The inputs in `outcome.rest` were not handled, and are to be passed
in again once their clients have taken some of their output and no longer wait; no newer inputs of theirs may come
before them. A client in `outcome.closing` has broken the protocol: the caller closes the connection with the fault and
then calls `disconnect`; the broker already ignores its inputs. Each of these may raise StateInDoubt: then this broker
must not be used any more, see `containment`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pandomq import kernel
from pandomq.broker.administration.administration import Administration
from pandomq.broker.administration.entrance import enter
from pandomq.broker.administration.quotas import Tally
from pandomq.broker.batches import BatchOutcome as BatchOutcome
from pandomq.broker.batches import Input as Input
from pandomq.broker.channel import Channel
from pandomq.broker.client import Client
from pandomq.broker.containment import Containment
from pandomq.broker.deadlines import meet_deadlines, watch_changed
from pandomq.broker.faults import Faults
from pandomq.broker.hooks import BrokerHooks
from pandomq.broker.leases.leases import Leases
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import Command, LeaseCommand, MessageCommand, StartBroker, encode_command, is_inner
from pandomq.broker.log.deferral import Deferral
from pandomq.broker.log.held_replies import HeldReplies
from pandomq.broker.log.receipts import Receipts
from pandomq.broker.log.replay import apply_entry
from pandomq.broker.log.snapshot import configuration_of
from pandomq.broker.log.state_size import StateSize
from pandomq.broker.methods.dispatch import HANDLERS, Handler
from pandomq.broker.methods.on_channel import agree, open_channel
from pandomq.broker.naming import NameMaker
from pandomq.broker.publishing.deduplication import Deduplication
from pandomq.broker.publishing.producers import Producers
from pandomq.broker.publishing.returns import return_unroutable
from pandomq.broker.publishing.transactions import Admission
from pandomq.broker.publishing.uncommitted import Uncommitted
from pandomq.broker.queues.dead_letters import publish_dead
from pandomq.broker.queues.deaths import DeathRegister
from pandomq.broker.queues.outlets import publishes, take_receipts, takes
from pandomq.broker.queues.removal import release_client
from pandomq.broker.staging.staging import Staging
from pandomq.broker.state import ReplicatedState
from pandomq.broker.streams.streams import Streams
from pandomq.broker.timers import Timers
from pandomq.broker.tracing import Tracing
from pandomq.errors import ChannelFault, ConnectionFault, command_invalid
from pandomq.fieldtable import FieldTable
from pandomq.methods import Method, MethodInput

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.queues.queue import Queue


class Broker:
    client_type: ClassVar[type[Client]] = Client
    channel_type: ClassVar[type[Channel]] = Channel
    handlers: ClassVar[Mapping[type[Method], Handler]] = HANDLERS

    def __init__(
        self,
        *,
        node_name: str,
        encode: Callable[[int, Method], bytes],
        encode_payload: Callable[[Method], bytes],
        random: "Random",
        limits: BrokerLimits,
    ) -> None:
        self.node_name = node_name
        self.encode = encode
        self.encode_payload = encode_payload
        self.limits = limits
        self.engine = kernel.Engine(self.make_hooks())
        self.state = ReplicatedState(self.engine, random, limits)
        self.names = NameMaker(random)
        self.state_size = StateSize(self.state)
        self.streams = Streams(self)
        self.held = HeldReplies()
        self.producers = Producers(self)
        self.deduplication = Deduplication(self, random)
        self.receipts = Receipts(self)
        self.staging = Staging(self)
        self.timers = Timers()
        self.tracing = Tracing(self)
        self.leases = Leases(self)
        self.deaths = DeathRegister()
        self.faults = Faults(self)
        self.uncommitted = Uncommitted(self)
        self.containment = Containment(self)
        self.administration = Administration(self)
        self.clients: dict[Client, None] = {}
        self.tallies: dict[str, Tally] = {}
        """By user: the tallies of connected users."""
        self.consumer_count = 0
        self.admissions: dict[Admission, None] = {}
        """Admissions of transactions that the log does not have yet."""
        self.deleted_queues: list[kernel.Queue] = []
        """Queues deleted in this batch: their dead messages may still have to be published."""
        self.lacks_copies = False
        """Whether other brokers that keep the log are down, and are not waited for."""
        self.on_command: Callable[[bytes], None] | None = None
        """Is called with every change of shared state, in the order of the log; not with the content of a snapshot."""
        self.commands_changed = 0
        """The number of commands, and of changes without one, that have begun to change what other clients see."""
        self.now_ms = 0
        self.clock_ahead_ms = 0
        """How much later the time that the broker gets is than the cluster's."""
        self.deferral = Deferral(self)
        self._clients_so_far, self._unsealed = 0, False

    def make_hooks(self) -> kernel.Hooks:
        """Called once, before any other part exists."""
        return BrokerHooks(self)

    # Clients connect and disconnect.

    def connect(
        self,
        *,
        user: str,
        vhost: str,
        peer: str,
        client_properties: FieldTable,
        frame_max: int,
        channel_max: int,
        now_ms: int,
        counted: bool = True,
        origin: str | None = None,
        trunk: bool = False,
        identity: int = 0,
    ) -> Client:
        """Raises ConnectionFault (530) if there is no such vhost, the user may not enter it, or has enough connections.

        A client that is not `counted` comes from inside, and no limit of connections applies to it. A client with an
        `origin` belongs to that broker, which has verified its password; a `trunk` is that broker itself, and is not
        authenticated. Its `identity` distinguishes its connection from all others, also at later roots; 0: only this
        broker knows it.
        """
        home, access, tally = enter(self, user, vhost, counted=counted, trunk=trunk)
        self._clients_so_far += 1
        client = self.client_type(
            self,
            self._clients_so_far,
            user=user,
            vhost=home,
            access=access,
            tally=tally,
            counted=counted,
            origin=origin,
            trunk=trunk,
            identity=identity,
            peer=peer,
            client_properties=client_properties,
            frame_max=frame_max,
            channel_max=channel_max,
            now_ms=now_ms,
        )
        self.clients[client] = None
        return client

    def disconnect(self, client: Client, now_ms: int) -> None:
        """The socket is closed, or about to be: the client's objects are removed. An (empty) batch has to follow."""
        if client.gone:
            return
        now_ms = self.note_time(now_ms)
        client.gone = True
        if not client.failed:
            release_client(self, client)
        client.session.close(now_ms)
        client.session.owner = None
        del self.clients[client]
        if client.counted:
            client.tally.connection_count -= 1
            client.vhost.connection_count -= 1
        self._unsealed = True

    # Batches.

    def note_time(self, now_ms: int) -> int:
        """Takes the time, also between batches; returns the cluster's."""
        self.now_ms = now_ms = now_ms - self.clock_ahead_ms
        if self.tracing.traced:
            self.tracing.begin_at(now_ms)
        return now_ms

    def handle(self, batch: Sequence[tuple[Client, Sequence[Input]]], now_ms: int) -> BatchOutcome:
        now_ms = self.note_time(now_ms)
        engine = self.engine
        rest: list[tuple[Client, Sequence[Input]]] = []
        behind: set[Client] = set()
        for client, inputs in batch:
            if client in behind:
                rest.append((client, inputs))
                continue
            for position, item in enumerate(inputs):
                if client.failed or client.gone:
                    break
                if client.waits or self._is_behind(client, item):
                    behind.add(client)
                    rest.append((client, inputs[position:]))
                    break
                changes = self.commands_changed + engine.changes
                try:
                    if isinstance(item, MethodInput):
                        client.ask_again()
                        self._method(client, item.channel, item.method)
                        if client.asks_again:
                            behind.add(client)
                            rest.append((client, inputs[position:]))
                            break
                    elif isinstance(item, kernel.PublishRun):
                        engine.publish(client.session, item, now_ms)
                    elif client.trunk:
                        take_receipts(self, client, item)
                    else:
                        engine.settle(client.session, item, now_ms)
                    self.faults.finish()
                except Exception as error:
                    self.containment.close(client, error, changes)
        if self.staging.expansion.is_ready:
            self.staging.expansion.turn()
        outcome = self._finish(now_ms)
        return outcome._replace(rest=tuple(rest)) if rest else outcome

    def _is_behind(self, client: Client, item: Input) -> bool:
        if self.held.publishes_wait and (publishes(item) or (takes(item) and not client.trunk)):
            client.awaits_outlets = True
            return True
        # A method always adds an answer to what waits; a publish only if it is returned, and then to what is held.
        waiting = client.unwritten_bytes if isinstance(item, MethodInput) else client.held_bytes
        return waiting > self.limits.outgoing_bytes_max

    def tick(self, now_ms: int) -> BatchOutcome:
        now_ms = self.note_time(now_ms)
        meet_deadlines(self, now_ms)
        return self._finish(now_ms)

    def _finish(self, now_ms: int) -> BatchOutcome:
        engine = self.engine
        if self.leases.is_waiting:
            self.leases.go_on()
        for _ in range(self.limits.dead_letter_rounds_max):
            if engine.dead:
                self.publish_dead(now_ms)
            if engine.returned:
                return_unroutable(self)
            engine.deliver(now_ms)
            if not engine.dead and not engine.returned:
                break
        if self.tracing.traced:
            self.tracing.turn()
        if self.streams.is_wanted:
            self.streams.turn()
        if engine.waiting_for_time:
            for queue in engine.waiting_for_time:
                self.timers.watch_messages(queue)
            engine.waiting_for_time.clear()
        if self.deleted_queues and not engine.dead:
            for queue in self.deleted_queues:
                queue.owner = None
            self.deleted_queues.clear()
        self.producers.note(engine.numbered)
        self.deduplication.note()
        self._unsealed = False
        return BatchOutcome(self.deferral.seal(now_ms), self.faults.take_closing(), prompt=engine.prompt)

    def publish_dead(self, now_ms: int) -> None:
        publish_dead(self, now_ms)

    def private_queue_leaves(self, queue: "Queue") -> None:
        """The queue still exists, with its bindings, and is about to be deleted: a hook for accounts of them."""

    def _method(self, client: Client, number: int, method: Method) -> None:
        if self.engine.returned:
            return_unroutable(self)
        channel = client.channels.get(number)
        try:
            if channel is None:
                open_channel(self, client, number, method)
            elif channel.closing:
                agree(self, channel, method)
            else:
                handler = self.handlers.get(type(method))
                if handler is None:
                    raise command_invalid("unimplemented method")
                handler(self, channel, method)
        except (ChannelFault, ConnectionFault) as fault:
            self.faults.close(client, channel, fault.at(method.class_id, method.method_id))

    # The log.

    def issue(self, command: Command) -> None:
        """Changes shared state: here now, everywhere by the log. Raises ChannelFault (406) if that has no room."""
        encoded = encode_command(command)
        self.state_size.check(command, len(encoded), self.limits.configuration_bytes_max, self.now_ms)
        self.change(command)
        self.state_size.issued(command, len(encoded))
        self._unsealed = True
        self.engine.log_command(encoded)
        if not isinstance(command, StartBroker) and not is_inner(command):
            # Fronts do not know inner queues: no reply waits until they do.
            self.held.command_logged()
        if self.on_command is not None:
            self.on_command(encoded)

    def log(self, command: MessageCommand) -> None:
        """Like `issue`, for commands that are no configuration: no front needs them."""
        encoded = encode_command(command)
        self.change(command)
        self._unsealed = True
        self.engine.log_command(encoded)

    @property
    def changes(self) -> int:
        """Increases with every change of state; the amount has no meaning."""
        return self.commands_changed + self.engine.changes

    def change(self, command: Command) -> None:
        """Applies a command here, whether this broker issued it or found it in the log."""
        self.commands_changed += 1
        if isinstance(command, LeaseCommand):
            self.leases.apply(command)
            return
        self.state.apply(command)
        self.tracing.heard(command)
        if self.state.changed_queues:
            watch_changed(self)

    def sealed(self, index: int) -> None:
        """The last outcome's proposal got this index; 0 if there was none."""
        # Earlier requests are answered before later publishes are confirmed.
        self.held.sealed(index)
        self.receipts.sealed(index)

    def received(self, index: int) -> None:
        """Enough brokers have entries up to this one, in memory; entries not reported here are by `committed`."""
        self.engine.received(index)

    def committed(self, index: int) -> None:
        """Releases whatever waited for entries up to this one."""
        self.held.committed(index)
        self.engine.committed(index)
        if self.tracing.traced:
            self.tracing.watch()

    def apply(self, index: int, term: int, entry: bytes) -> None:
        """Replays an entry of the log."""
        apply_entry(self, index, term, entry)

    def configuration(self) -> list[bytes]:
        """Everything that is shared, as it is now, without any message: `Revival.take` makes a second broker of it."""
        return configuration_of(self)

    # State for the caller.

    @property
    def replicated(self) -> bool:
        """Whether more than one broker keeps the log."""
        return self.engine.replicated

    @property
    def has_copies(self) -> bool:
        """An entry committed now is on more than one disk."""
        return self.engine.replicated and not self.lacks_copies

    def take_dirty(self) -> list[Client]:
        """Clients whose session has bytes to write, each once."""
        return [session.owner for session in self.engine.take_dirty()]

    @property
    def next_deadline_ms(self) -> int:
        """The time at which `tick` is needed; NEVER_MS if it is not."""
        next_ms = min(self.timers.next_ms, self.deferral.due_ms)
        return next_ms if next_ms == kernel.NEVER_MS else next_ms + self.clock_ahead_ms

    @property
    def at_rest(self) -> bool:
        """The log has, or will have, all that happened: no message is on its way from one place to another."""
        return not self._unsealed and not self.engine.dead and not self.deferral.pending

    @property
    def active(self) -> bool:
        """Another batch, even an empty one, would have an effect."""
        waiting = self._unsealed or self.held.is_unsealed or self.leases.is_waiting or bool(self.engine.dead)
        return waiting or self.engine.active or self.staging.expansion.is_ready
