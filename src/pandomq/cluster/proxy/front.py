"""The broker for clients that are not the root's: a `Broker` that has no log and asks the root instead.

Driven like any broker (`handle`, `tick`, `take_dirty`, `next_deadline_ms`, `active`), with three differences. It never
has a proposal, and needs neither `sealed` nor `committed`. It has its configuration from elsewhere: `begin` once, and
again whenever a gap makes it necessary, then `follow` for each entry with commands that is committed. And it wants
`tunnels`: see there. Clients that have said goodbye are parted from by `part`.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pandomq import kernel
from pandomq.broker.broker import Broker, Input, Outcome
from pandomq.broker.dead_letters import send_dead
from pandomq.broker.deadlines import watch_changed
from pandomq.broker.places import PLACE
from pandomq.broker.queue import Queue
from pandomq.broker.removal import leave_client
from pandomq.cluster.proxy import dispatch
from pandomq.cluster.proxy.awaiting import Awaiting
from pandomq.cluster.proxy.feed import Feed
from pandomq.cluster.proxy.front_channel import FrontChannel
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.cluster.proxy.front_faults import FrontFaults
from pandomq.cluster.proxy.front_hooks import FrontHooks
from pandomq.cluster.proxy.letters import Letters, goes_round
from pandomq.cluster.proxy.limits import ROOT_WAIT_MS
from pandomq.cluster.proxy.numbers_seen import NumbersSeen
from pandomq.cluster.proxy.trunk import Trunk
from pandomq.kernel.constants import BASIC, GET_OK
from pandomq.methods import BasicReturn, MethodInput
from pandomq.wire.codec import decode_method

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.client import Client
    from pandomq.broker.commands import Command
    from pandomq.broker.dispatch import Handler
    from pandomq.broker.exchanges.exchange import QueueDestination
    from pandomq.broker.limits import BrokerLimits
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.tunnel import Tunnel
    from pandomq.methods import Method


_GET_OK: Final = struct.pack(">HH", BASIC, GET_OK)


class Front(Broker):
    client_type: ClassVar[type["Client"]] = FrontClient
    channel_type: ClassVar[type[Any]] = FrontChannel
    handlers: ClassVar[Mapping[type["Method"], "Handler"]] = dispatch.HANDLERS

    def __init__(
        self,
        *,
        node_name: str,
        encode: "Callable[[int, Method], bytes]",
        encode_payload: "Callable[[Method], bytes]",
        random: "Random",
        limits: "BrokerLimits",
        root_wait_ms: int = ROOT_WAIT_MS,
    ) -> None:
        self.random = random
        super().__init__(
            node_name=node_name, encode=encode, encode_payload=encode_payload, random=random, limits=limits
        )
        self.faults = FrontFaults(self)
        self.feed = Feed(self)
        for vhost in self.state.vhosts.values():
            self.arrange(vhost)
        self.awaiting = Awaiting(self, root_wait_ms)
        self.trunks: dict[Vhost, Trunk] = {}
        self.seen: dict[int, int] = {}
        """By producer, on other brokers: the number of the last message that came from it."""
        self.numbers_seen = NumbersSeen()
        """The same of publishers that number their messages themselves."""
        self.wanted: list[Tunnel] = []
        """To be dialed now; the driver takes them off. Some may be `gone` by the time it looks."""
        self.ended: list[Tunnel] = []
        """To be hung up; the driver takes them off."""
        self.unsettled: dict[FrontChannel, None] = {}
        """Channels with settlements of which the root that is there now may not know."""
        self._noted: list[tuple[Tunnel, Callable[[], None]]] = []

    def make_hooks(self) -> kernel.Hooks:
        return FrontHooks(self)

    # The configuration.

    @property
    def ready(self) -> bool:
        """It has a configuration: clients may come."""
        return self.feed.begun

    @property
    def applied_index(self) -> int:
        """Of the last entry that it knows."""
        return self.feed.index

    def begin(self, configuration: Iterable[bytes], index: int = 0) -> None:
        """As `Broker.configuration` gives it, of the broker that has applied the log up to this index. If it is not the
        first one, clients and their private queues stay, as far as their vhost does."""
        self.feed.begin(configuration, index)
        self._unsealed = True

    def follow(self, index: int, commands: Sequence[bytes]) -> None:
        """The commands of the committed entry with this index; entries without any may be passed over."""
        self.feed.follow(index, commands)
        self._unsealed = True

    def change(self, command: "Command") -> None:
        self.state.apply(command)
        # What time does to shared queues is the root's matter.
        self.state.changed_queues = [queue for queue in self.state.changed_queues if queue.owner is not None]
        if self.state.changed_queues:
            for vhost in {queue.vhost: None for queue in self.state.changed_queues}:
                # Those that may refuse messages now must be asked.
                for exchange in vhost.router.exchanges.values():
                    vhost.router.changed(exchange, None)
            watch_changed(self)

    def issue(self, command: "Command") -> None:
        """Shared state is changed by the root alone: it is told what private queues no longer need, and finds out by
        itself which exchanges have nobody left."""

    def arrange(self, vhost: "Vhost") -> None:
        """Messages go to private queues only: the root sees to the others."""
        vhost.router.leads_to = _is_private

    # Clients and their private queues.

    def part(self, client: "Client", now_ms: int) -> bool:
        """The client has said goodbye. True: `disconnect` it, and answer; otherwise that comes when `client.parted`.
        May be asked again."""
        assert isinstance(client, FrontClient)
        self.now_ms = now_ms
        return client.part()

    def leave(self, client: FrontClient) -> None:
        """Nothing that it says counts any more."""
        client.failed = True
        leave_client(self, client)
        self._unsealed = True

    def disconnect(self, client: "Client", now_ms: int) -> None:
        assert isinstance(client, FrontClient)
        client.abandon_call()
        super().disconnect(client, now_ms)
        client.hang_up()
        self.awaiting.forget(client)
        self.awaiting.has_root(client)

    def clients_of(self, vhost: "Vhost") -> list[FrontClient]:
        return [client for client in self.clients if isinstance(client, FrontClient) and client.vhost is vhost]

    def trunk_of(self, vhost: "Vhost") -> Trunk:
        trunk = self.trunks.get(vhost)
        if trunk is None:
            trunk = self.trunks[vhost] = Trunk(self, vhost)
        return trunk

    def private_queue_leaves(self, queue: Queue) -> None:
        trunk = self.trunks.get(queue.vhost)
        if trunk is not None:
            for binding in queue.vhost.router.bindings_to(queue):
                trunk.bindings.drop(binding)
            trunk.claims.release(queue.name)

    def publish_dead(self, now_ms: int) -> None:
        """As if a client had published them: to private queues here, and to the root."""
        dead = list(self.engine.dead)
        self.engine.dead.clear()
        send_dead(self, dead, self._post, now_ms)

    def _post(self, vhost: "Vhost", letter: kernel.Message, queues: Sequence[kernel.Queue]) -> None:
        if queues:
            self.engine.enqueue(None, letter, queues, 0, self.now_ms)
        if not goes_round(vhost, letter):
            self.trunk_of(vhost).letters.send(letter)

    # Batches.

    def note_event(self, tunnel: "Tunnel", event: Callable[[], None]) -> None:
        """Something has happened to a tunnel, for the next batch."""
        self._noted.append((tunnel, event))

    def handle(self, batch: Sequence[tuple["Client", Sequence[Input]]], now_ms: int) -> Outcome:
        self.now_ms = now_ms
        self._take_noted()
        outcome = super().handle(batch, now_ms)
        for client, inputs in batch:
            assert isinstance(client, FrontClient)
            if any(isinstance(item, kernel.SettleRun) for item in inputs):
                for channel in client.front_channels:
                    channel.proofs.settled()
        for client, _ in outcome.rest:
            assert isinstance(client, FrontClient)
            self.awaiting.kept_waiting(client)
        return outcome

    def tick(self, now_ms: int) -> Outcome:
        self.now_ms = now_ms
        self._take_noted()
        self.awaiting.tick(now_ms)
        return super().tick(now_ms)

    def _take_noted(self) -> None:
        while self._noted:
            noted, self._noted = self._noted, []
            for tunnel, event in noted:
                if not tunnel.gone:
                    event()
                    self.faults.finish()

    def take(self, tunnel: "Tunnel", inputs: Sequence[Any]) -> None:
        """What the root has said."""
        for item in inputs:
            if tunnel.gone:
                return
            if isinstance(item, MethodInput):
                lane = tunnel.lanes.get(item.channel)
                if lane is not None:
                    lane.hear(item.method)
            elif isinstance(item, kernel.Content):
                self._take_content(tunnel, item)
            else:
                tunnel.holder.take_run(item)
            self.faults.finish()

    def _take_content(self, tunnel: "Tunnel", content: "kernel.Content") -> None:
        lane = tunnel.lanes.get(content.channel)
        payload, message = content.payload, content.message
        queue_id = 0
        if payload.startswith(_GET_OK):
            queue_id, message.number, message.producer = PLACE.unpack(payload[-PLACE.size :])
            payload = payload[: -PLACE.size]
        method = decode_method(payload)
        if isinstance(method, BasicReturn):
            tunnel.holder.take_return(content.channel, payload, message)
        elif lane is not None:
            lane.taken_from = queue_id
            lane.hear(method, message)

    def _finish(self, now_ms: int) -> Outcome:
        self.faults.finish()
        outcome = super()._finish(now_ms)
        for trunk in self.trunks.values():
            trunk.give_receipt()
        assert outcome.proposal is None, "a front has no log"
        self.sealed(0)
        return outcome

    def _is_behind(self, client: "Client", item: Input) -> bool:
        assert isinstance(client, FrontClient)
        if client.is_crowded():
            return True
        if isinstance(item, kernel.PublishRun) and not client.may_publish():
            return True
        return super()._is_behind(client, item)

    def root_changed(self) -> None:
        """Another broker is root, or the same in another term: attempts to reach the last one count no more."""
        for trunk in self.trunks.values():
            trunk.attempt_count = 0
        self.awaiting.root_changed()

    @property
    def next_deadline_ms(self) -> int:
        return min(super().next_deadline_ms, self.awaiting.next_ms)

    @property
    def active(self) -> bool:
        return bool(self._noted) or super().active

    def take_dirty(self) -> list[Any]:
        """Clients and tunnels whose session has octets to write, each once."""
        dirty: list[Any] = super().take_dirty()
        return [owner for owner in dirty if not isinstance(owner, Letters)]


def _is_private(destination: "QueueDestination") -> bool:
    return isinstance(destination, Queue) and destination.owner is not None
