"""One broker: what its clients ask for, in batches, and what it proposes to the log.

Pure: time is `now_ms` (milliseconds since 1970), chance is injected, bytes for clients are left in their sessions.
For each batch the caller does, in this order:

    outcome = broker.handle(batch, now_ms)        or broker.tick(now_ms)
    index = append outcome.proposal to the log    (0 if there is none)
    broker.sealed(index)
    broker.committed(index)                       now or later, whenever the log says so
    write what broker.take_dirty() has to say

and again with an empty batch while `broker.active`. What is in `outcome.rest` was not handled, and is to be handed in
again once its clients have taken some of what they were answered and no longer wait; nothing newer of theirs may come
before it.
A client in `outcome.closing` has broken the protocol: the caller closes the connection with the fault and then says
`disconnect`; the broker has already stopped to listen to it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pandomq import kernel
from pandomq.broker.administration import Administration
from pandomq.broker.batches import Input as Input
from pandomq.broker.batches import Outcome as Outcome
from pandomq.broker.channel import Channel
from pandomq.broker.client import Client
from pandomq.broker.commands import Command, LeaseCommand, MessageCommand, StartBroker, encode_command, is_inner
from pandomq.broker.dead_letters import publish_dead
from pandomq.broker.deadlines import meet_deadlines, watch_changed
from pandomq.broker.deaths import DeathRegister
from pandomq.broker.deduplication import Deduplication
from pandomq.broker.dispatch import HANDLERS, Handler
from pandomq.broker.entrance import enter
from pandomq.broker.faults import Faults
from pandomq.broker.held_replies import HeldReplies
from pandomq.broker.hooks import BrokerHooks
from pandomq.broker.leases.leases import Leases
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.naming import NameMaker
from pandomq.broker.on_channel import agree, open_channel
from pandomq.broker.outlets import publishes, take_receipts, takes
from pandomq.broker.producers import Producers
from pandomq.broker.quotas import Tally
from pandomq.broker.receipts import Receipts
from pandomq.broker.removal import leave_client
from pandomq.broker.replay import apply_entry
from pandomq.broker.snapshot import configuration_of
from pandomq.broker.staging.staging import Staging
from pandomq.broker.state import State
from pandomq.broker.state_size import StateSize
from pandomq.broker.streams.streams import Streams
from pandomq.broker.timers import Timers
from pandomq.broker.tracing import Tracing
from pandomq.broker.transactions import Admission
from pandomq.errors import ChannelFault, ConnectionFault, command_invalid
from pandomq.fieldtable import FieldTable
from pandomq.methods import BasicReturn, Method, MethodInput

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.queue import Queue

NO_ROUTE = 312


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
        self.state = State(self.engine, random, limits)
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
        self.administration = Administration(self)
        self.clients: dict[Client, None] = {}
        self.tallies: dict[str, Tally] = {}
        """By user: of those who are connected."""
        self.consumer_count = 0
        self.admissions: dict[Admission, None] = {}
        """Of transactions that the log does not have yet."""
        self.deleted_queues: list[kernel.Queue] = []
        """In this batch: what died in them may still have to be sent on."""
        self.lacks_copies = False
        """Others that keep the log are away, and are not waited for."""
        self.on_command: Callable[[bytes], None] | None = None
        """Hears of every change of shared state, in the order of the log: those of a batch before it is sealed, those
        of an entry from elsewhere while it is applied. What a snapshot brings is in `configuration`."""
        self.now_ms = 0
        self.clock_ahead_ms = 0
        """By how much the time that it is told is later than the cluster's."""
        self._clients_so_far = 0
        self._unsealed = False

    def make_hooks(self) -> kernel.Hooks:
        """Called once, before anything else is there."""
        return BrokerHooks(self)

    # Clients come and go.

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

        Who is not `counted` does not come from outside, and no limit of connections concerns it. Who has an `origin` is
        a client of that broker, which has asked for its password; a `trunk` is that broker itself, and is not asked who
        it is. Its `identity` tells its connection from all others, also at later roots; 0: only this broker knows it.
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
        """The socket is gone, or about to be: what the client had goes, too. Wants an (empty) batch after it, see
        `active`."""
        if client.gone:
            return
        now_ms = self.note_time(now_ms)
        client.gone = True
        if not client.failed:
            leave_client(self, client)
        client.session.close(now_ms)
        client.session.owner = None
        del self.clients[client]
        if client.counted:
            client.tally.connection_count -= 1
            client.vhost.connection_count -= 1
        self._unsealed = True

    # Batches.

    def note_time(self, now_ms: int) -> int:
        """As it is told, also of what happens between batches; returns the cluster's."""
        self.now_ms = now_ms = now_ms - self.clock_ahead_ms
        if self.tracing.traced:
            self.tracing.begin_at(now_ms)
        return now_ms

    def handle(self, batch: Sequence[tuple[Client, Sequence[Input]]], now_ms: int) -> Outcome:
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
        if self.staging.expansion.is_ready:
            self.staging.expansion.turn()
        outcome = self._finish(now_ms)
        return outcome._replace(rest=tuple(rest)) if rest else outcome

    def _is_behind(self, client: Client, item: Input) -> bool:
        if self.held.publishes_wait and (publishes(item) or (takes(item) and not client.trunk)):
            client.awaits_outlets = True
            return True
        # A method always adds an answer to what waits; a publish only if it comes back, and then to what is held.
        waiting = client.unwritten_bytes if isinstance(item, MethodInput) else client.held_bytes
        return waiting > self.limits.outgoing_bytes_max

    def tick(self, now_ms: int) -> Outcome:
        now_ms = self.note_time(now_ms)
        meet_deadlines(self, now_ms)
        return self._finish(now_ms)

    def _finish(self, now_ms: int) -> Outcome:
        engine = self.engine
        if self.leases.is_waiting:
            self.leases.go_on()
        for _ in range(self.limits.dead_letter_rounds_max):
            if engine.dead:
                self.publish_dead(now_ms)
            if engine.returned:
                self.return_unroutable()
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
        return Outcome(engine.seal(now_ms), self.faults.take_closing(), prompt=engine.prompt)

    def publish_dead(self, now_ms: int) -> None:
        publish_dead(self, now_ms)

    def private_queue_leaves(self, queue: "Queue") -> None:
        """It is still there, with its bindings, and about to go: for who keeps an account of them."""

    def return_unroutable(self) -> None:
        """Before the confirms of what comes back, and before the reply to whatever the publisher asked after it."""
        for channel, message, _flags in self.engine.returned:
            if channel.open:
                method = BasicReturn(NO_ROUTE, "NO_ROUTE", message.exchange, message.routing_key)
                channel.owner.reply_with_content(method, message)
        self.engine.returned.clear()

    def _method(self, client: Client, number: int, method: Method) -> None:
        if self.engine.returned:
            self.return_unroutable()
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
        except ChannelFault as fault:
            fault.at(method.class_id, method.method_id)
            assert channel is not None
            self.faults.close_channel(channel, fault)
        except ConnectionFault as fault:
            fault.at(method.class_id, method.method_id)
            self.faults.close_client(client, fault)

    # The log.

    def issue(self, command: Command) -> None:
        """Changes shared state: here now, everywhere by the log. Raises ChannelFault (406) if that has no room."""
        self.state_size.check(command, self.limits.configuration_bytes_max, self.now_ms)
        encoded = encode_command(command)
        self.change(command)
        self.state_size.issued(command, len(encoded))
        self._unsealed = True
        self.engine.log_command(encoded)
        if not isinstance(command, StartBroker) and not is_inner(command):
            # Not everybody hears of inner queues: nobody waits until they have.
            self.held.command_logged()
        if self.on_command is not None:
            self.on_command(encoded)

    def log(self, command: MessageCommand) -> None:
        """The same for what is no configuration: nobody outside hears of it."""
        self.change(command)
        self._unsealed = True
        self.engine.log_command(encode_command(command))

    def change(self, command: Command) -> None:
        """What a command means here, whether this broker issued it or found it in the log."""
        if isinstance(command, LeaseCommand):
            self.leases.apply(command)
            return
        self.state.apply(command)
        self.tracing.heard(command)
        if self.state.changed_queues:
            watch_changed(self)

    def sealed(self, index: int) -> None:
        """The last outcome's proposal got this index; 0 if there was none."""
        # What was asked before is answered before what was published after it is confirmed.
        self.held.sealed(index)
        self.receipts.sealed(index)

    def received(self, index: int) -> None:
        """Enough brokers have entries up to this one, in memory; of those that are not told, `committed` says it."""
        self.engine.received(index)

    def committed(self, index: int) -> None:
        """Whatever waited for entries up to this one may go out."""
        self.held.committed(index)
        self.engine.committed(index)
        if self.tracing.traced:
            self.tracing.watch()

    def apply(self, index: int, term: int, entry: bytes) -> None:
        """Replays an entry of the log."""
        apply_entry(self, index, term, entry)

    def configuration(self) -> list[bytes]:
        """All that is shared, as it is now, without any message: what `Revival.take` makes a second broker of."""
        return configuration_of(self)

    # What the caller needs to know.

    @property
    def replicated(self) -> bool:
        """The log is kept by more than one broker."""
        return self.engine.replicated

    @property
    def has_copies(self) -> bool:
        """What is committed now is so on more than one disk."""
        return self.engine.replicated and not self.lacks_copies

    def take_dirty(self) -> list[Client]:
        """Clients whose session has bytes to write, each once."""
        return [session.owner for session in self.engine.take_dirty()]

    @property
    def next_deadline_ms(self) -> int:
        """When `tick` is wanted; NEVER_MS if not."""
        next_ms = self.timers.next_ms
        return next_ms if next_ms == kernel.NEVER_MS else next_ms + self.clock_ahead_ms

    @property
    def at_rest(self) -> bool:
        """The log has, or will have, all that happened: nothing is on its way from one place to another."""
        return not self._unsealed and not self.engine.dead

    @property
    def active(self) -> bool:
        """Another batch, even an empty one, would do something."""
        engine = self.engine
        waiting = self._unsealed or self.held.is_unsealed or self.leases.is_waiting
        return waiting or engine.active or bool(engine.dead) or self.staging.expansion.is_ready
