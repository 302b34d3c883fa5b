"""The broker for clients of brokers that are not the root: a `Broker` that has no log and sends requests to the root.

It is driven like any broker (`handle`, `tick`, `take_dirty`, `next_deadline_ms`, `active`), with three differences. It
never has a proposal, and needs neither `sealed` nor `committed`. It gets its configuration from outside: `begin` once,
and again whenever a gap requires it, then `follow` for each committed entry with commands. And it needs `tunnels`, see
there. `part` ends clients that have closed their connection.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pandomq import kernel
from pandomq.broker.broker import BatchOutcome, Broker, Input
from pandomq.broker.deadlines import watch_changed
from pandomq.broker.queues.dead_letters import send_dead
from pandomq.broker.queues.queue import Queue
from pandomq.broker.queues.removal import release_client
from pandomq.cluster.proxy.awaiting import Awaiting
from pandomq.cluster.proxy.feed import Feed
from pandomq.cluster.proxy.front_channel import FrontChannel, FrontFaults
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.cluster.proxy.limits import ROOT_WAIT_MS
from pandomq.cluster.proxy.methods import dispatch
from pandomq.cluster.proxy.private.dead_letter_uplink import DeadLetterUplink, goes_round
from pandomq.cluster.proxy.private.numbers_seen import NumbersSeen
from pandomq.cluster.proxy.private.trunk import Trunk
from pandomq.cluster.proxy.publishing import FrontHooks

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.client import Client
    from pandomq.broker.exchanges.exchange import QueueDestination
    from pandomq.broker.limits import BrokerLimits
    from pandomq.broker.log.commands import Command
    from pandomq.broker.methods.dispatch import Handler
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.tunnel import Tunnel
    from pandomq.methods import Method


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
        """The number of the last message that came from each producer on another broker. The producer that published
        last is the last one."""
        self.numbers_seen = NumbersSeen()
        """The last numbers that came from publishers that number their messages themselves."""
        self.wanted: list[Tunnel] = []
        """Tunnels to be dialed now; the driver removes them. Some may be over by then."""
        self.ended: list[Tunnel] = []
        """Tunnels to be closed; the driver removes them."""
        self.unsettled: dict[FrontChannel, None] = {}
        """Channels with settlements that the current root may not know."""
        self.indebted: dict[FrontChannel, None] = {}
        """Channels whose clients have not settled everything that earlier roots delivered."""
        self._noted: list[tuple[Tunnel, Callable[[], None]]] = []

    def make_hooks(self) -> kernel.Hooks:
        return FrontHooks(self)

    # The configuration.

    @property
    def ready(self) -> bool:
        """The front has a configuration: it can accept clients."""
        return self.feed.begun

    @property
    def applied_index(self) -> int:
        """The index of the last entry that the front knows."""
        return self.feed.index

    def begin(self, configuration: Iterable[bytes], index: int = 0) -> None:
        """Takes a configuration as `Broker.configuration` returns it, of the broker that has applied the log up to this
        index. If it is not the first one, clients and their private queues stay where their vhost does."""
        self.feed.begin(configuration, index)
        self._unsealed = True

    def follow(self, index: int, commands: Sequence[bytes]) -> None:
        """Applies the commands of the committed entry with this index; entries without any may be skipped."""
        self.feed.follow(index, commands)
        self._unsealed = True

    def change(self, command: "Command") -> None:
        self.state.apply(command)
        # The root handles the deadlines of shared queues.
        self.state.changed_queues = [queue for queue in self.state.changed_queues if queue.owner is not None]
        if self.state.changed_queues:
            for vhost in {queue.vhost: None for queue in self.state.changed_queues}:
                # Some exchanges may refuse messages now, so their cached routes are withdrawn.
                for exchange in vhost.router.exchanges.values():
                    vhost.router.changed(exchange, None)
            watch_changed(self)

    def issue(self, command: "Command") -> None:
        """Only the root changes shared state: the front sends it what private queues no longer need, and the root
        itself finds out which exchanges have no bindings left."""

    def arrange(self, vhost: "Vhost") -> None:
        """Routes messages to private queues only: the root routes to the others."""
        vhost.router.leads_to = _is_private

    # Clients and their private queues.

    def may_release(self, client: "Client", now_ms: int) -> bool:
        """The client has closed its connection. True: call `disconnect` and answer; otherwise do so when
        `client.closed_at_root`. May be called again."""
        assert isinstance(client, FrontClient)
        self.now_ms = now_ms
        return client.may_release()

    def leave(self, client: FrontClient) -> None:
        """To be called when nothing that the client sends counts any more."""
        client.failed = True
        release_client(self, client)
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
        """Publishes dead letters as if a client had published them: to private queues here, and to the root."""
        dead = list(self.engine.dead)
        self.engine.dead.clear()
        send_dead(self, dead, self._post, now_ms)

    def _post(self, vhost: "Vhost", letter: kernel.Message, queues: Sequence[kernel.Queue]) -> None:
        if queues:
            self.engine.enqueue(None, letter, queues, 0, self.now_ms)
        if not goes_round(vhost, letter):
            self.trunk_of(vhost).dead_letters.send(letter)

    # Batches.

    def note_event(self, tunnel: "Tunnel", event: Callable[[], None]) -> None:
        """Records an event of a tunnel for the next batch."""
        self._noted.append((tunnel, event))

    def handle(self, batch: Sequence[tuple["Client", Sequence[Input]]], now_ms: int) -> BatchOutcome:
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

    def tick(self, now_ms: int) -> BatchOutcome:
        self.now_ms = now_ms
        self._take_noted()
        self.awaiting.tick(now_ms)
        return super().tick(now_ms)

    def _take_noted(self) -> None:
        while self._noted:
            noted, self._noted = self._noted, []
            for tunnel, event in noted:
                if not tunnel.is_over:
                    event()
                    self.faults.finish()

    def _finish(self, now_ms: int) -> BatchOutcome:
        self.faults.finish()
        outcome = super()._finish(now_ms)
        for trunk in self.trunks.values():
            trunk.give_receipt()
        for channel in list(self.indebted):
            channel.earlier.tell()
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
        """Another broker is root, or the same one in another term: attempts to reach the last one no longer count."""
        for trunk in self.trunks.values():
            trunk.attempt_count = 0
        for client in self.clients:
            if isinstance(client, FrontClient):
                client.attempt_count = 0
        for tunnel in self.wanted:
            # These are the first attempts to reach the new root; the others end, and are counted anew.
            if tunnel.client is not None:
                tunnel.client.attempt_count = 1
        self.awaiting.dial_all()

    def root_serves(self) -> None:
        """The root serves from now on, and refuses no attempt any more for the reason that it does not serve yet."""
        self.awaiting.dial_all()

    @property
    def next_deadline_ms(self) -> int:
        return min(super().next_deadline_ms, self.awaiting.next_ms)

    @property
    def active(self) -> bool:
        return bool(self._noted) or super().active

    def take_dirty(self) -> list[Any]:
        """Clients and tunnels whose session has bytes to write, each once."""
        dirty: list[Any] = super().take_dirty()
        return [owner for owner in dirty if not isinstance(owner, DeadLetterUplink)]


def _is_private(destination: "QueueDestination") -> bool:
    return isinstance(destination, Queue) and destination.owner is not None
