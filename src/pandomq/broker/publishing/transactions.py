"""A channel's transaction: publishes and settlements that wait for tx.commit.

Publishes are checked and routed when they come, as in RabbitMQ: that gives names, and the queues that have them when
the commit comes get the messages. With the commit they get their places in the queues and their part of the log's
entry, which is one for the whole transaction; consumers see them when that entry is committed, all together.
Settlements are counted as done for the channel at once and reach their queues with the commit; messages that die by
them become dead letters that are a part of the transaction. If the log has any part of it, it has every part that a
durable queue holds, persistent or not: the transaction takes its highest level for all its parts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from pandomq import kernel
from pandomq.broker.publishing.delayed import DelayedMessages, set_expiration_aside
from pandomq.broker.publishing.uncommitted import OVERHEAD_BYTES
from pandomq.broker.queues.dead_letters import send_dead
from pandomq.broker.queues.outlets import versions_of
from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.broker.publishing.deduplication import Label
    from pandomq.broker.vhost import Vhost

Target: TypeAlias = "str | DelayedMessages"
"""A queue by its name, or the place where delayed messages wait."""
Publish: TypeAlias = tuple[kernel.Message, Sequence[Target], int]
"""A message, its destinations, and its flags."""


class Admission:
    """Messages of a transaction that have their places, and enter their queues when the log has the transaction."""

    __slots__ = ("_client", "_keep", "messages", "now_ms")

    def __init__(self, client: "Client", now_ms: int, *, keep: bool) -> None:
        """`keep`: the log is to have them, persistent or not."""
        self._client = client
        self._keep = keep
        self.now_ms = now_ms
        """The time at which the messages got their places."""
        self.messages: list[tuple[kernel.Message, list[tuple[kernel.Queue, int, int, int]]]] = []
        """With their places: queue, sequence, term, deadline."""

    def prepare(
        self,
        engine: kernel.Engine,
        channel: kernel.Channel | None,
        message: kernel.Message,
        queues: Sequence[kernel.Queue],
        flags: int = 0,
    ) -> bool:
        """False if a queue refused it."""
        now = [queue for queue in queues if not isinstance(queue.owner, DelayedMessages)]
        if len(now) < len(queues):
            later = [queue for queue in queues if isinstance(queue.owner, DelayedMessages)]
            self._prepare(engine, channel, set_expiration_aside(message), later, 0)
            # A delayed message is not unroutable, so it is not returned for lack of other queues.
            if not now:
                return True
        local = [queue for queue in now if queue.local] if engine.replicated else []
        if not local or len(local) == len(queues):
            return self._prepare(engine, channel, message, now, flags)
        # The log has the message for the others only, where it may be delayed.
        others = [queue for queue in now if not queue.local]
        accepted = self._prepare(engine, channel, message.unkept_copy(), local, 0)
        return accepted if not others else self._prepare(engine, channel, message, others, flags) and accepted

    def _prepare(
        self,
        engine: kernel.Engine,
        channel: kernel.Channel | None,
        message: kernel.Message,
        queues: Sequence[kernel.Queue],
        flags: int,
    ) -> bool:
        accepted, places = engine.prepare(channel, message, queues, flags, self.now_ms, self._keep)
        if places:
            self.messages.append((message, places))
        return accepted

    def begin(self, broker: "Broker") -> None:
        broker.admissions[self] = None
        self._client.uncommitted_count += 1
        broker.held.call_when_committed(lambda: self._give(broker))

    def _give(self, broker: "Broker") -> None:
        del broker.admissions[self]
        self._client.uncommitted_count -= 1
        for message, places in self.messages:
            broker.engine.admit(message, places)
            for queue, sequence, _term, _deadline_ms in places:
                waiting = queue.owner
                if isinstance(waiting, DelayedMessages) and not queue.deleted:
                    waiting.restored(sequence, message, self.now_ms)
                    broker.timers.watch_delayed(self._client.vhost, waiting)


class Transaction:
    __slots__ = ("_bytes", "_client", "_publishes", "_settled", "_settlements", "size_bytes")

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.size_bytes = 0
        """The size of its publishes, as `uncommitted` counts it."""
        self._clear()

    def _clear(self) -> None:
        self._client.broker.uncommitted.remove(self._client, self.size_bytes)
        self.size_bytes = 0
        self._bytes = 0
        self._publishes: list[Publish] = []
        self._settlements: list[tuple[int, Sequence[int], bool]] = []
        self._settled: set[int] = set()

    @property
    def publish_count(self) -> int:
        return len(self._publishes)

    @property
    def settled_count(self) -> int:
        return len(self._settled)

    def is_settled(self, tag: int) -> bool:
        return tag in self._settled

    def publish(self, message: kernel.Message, targets: Sequence[Target], flags: int) -> None:
        """Raises ChannelFault (406) if that is too much."""
        broker, more_bytes = self._client.broker, len(message.header) + message.body_size
        bytes_max = broker.limits.transaction_bytes_max
        if self._bytes + more_bytes > bytes_max:
            raise precondition_failed(
                f"transaction size {self._bytes + more_bytes} is larger than configured max size {bytes_max}"
            )
        broker.uncommitted.add(self._client, more_bytes + OVERHEAD_BYTES)
        self._bytes += more_bytes
        self.size_bytes += more_bytes + OVERHEAD_BYTES
        self._publishes.append((message, targets, flags))

    def settle(self, channel: kernel.Channel, method_id: int, tag: int, multiple: bool, requeue: bool) -> None:
        """Raises ChannelFault (406) for a tag that is not outstanding, or was settled in this transaction."""
        tags = [known for known in channel.outstanding(tag, multiple) if known not in self._settled]
        # Tag 0 with multiple is everything so far, and that may be nothing.
        if not tags and not (multiple and tag == 0):
            raise precondition_failed(f"unknown delivery tag {tag}")
        if not tags:
            return
        self._settlements.append((method_id, tags, requeue))
        self._settled.update(tags)

    def commit(self, broker: "Broker", channel: "Channel") -> bool:
        """False if a queue refused a publish; the rest is done nevertheless, as in RabbitMQ."""
        publishes, settlements = self._publishes, self._settlements
        self._clear()
        engine, now_ms, vhost = broker.engine, broker.now_ms, channel.client.vhost
        accepted = True
        without = vhost.outlet_to(channel.client.origin)
        routed = [
            (version, places, flags & kernel.MANDATORY, label)
            for (message, targets, flags), label in _new(broker, channel, publishes)
            for version, places in versions_of(
                message,
                _present(vhost, targets, None if flags & kernel.IMMEDIATE else without),
                channel.client.user,
            )
        ]
        keep = engine.replicated or _is_kept(routed) or _settles_kept(channel.kernel, settlements)
        admission = Admission(channel.client, now_ms, keep=keep)
        for message, present, flags, label in routed:
            count = len(admission.messages)
            taken = admission.prepare(engine, channel.kernel, message, present, flags)
            accepted = accepted and taken
            if label is not None:
                broker.deduplication.settle(
                    label, accepted=taken and bool(present or not flags), in_part=len(admission.messages) > count
                )
        dead_before = len(engine.dead)
        for method_id, tags, requeue in settlements:
            for tag in tags:
                engine.settle_one(channel.kernel, method_id, tag, False, requeue, now_ms)
        dead = engine.dead[dead_before:]
        del engine.dead[dead_before:]
        send_dead(broker, dead, lambda _, letter, queues: admission.prepare(engine, None, letter, queues), now_ms)
        if admission.messages:
            admission.begin(broker)
        return accepted

    def rollback(self) -> None:
        self._clear()

    def forget(self) -> None:
        """Its channel is closed."""
        self._clear()


def _new(
    broker: "Broker", channel: "Channel", publishes: Sequence[Publish]
) -> "Sequence[tuple[Publish, Label | None]]":
    """The messages that had no effect before, with their producers if they are numbered. Raises ChannelFault (406)."""
    numbered = [publish[0] for publish in publishes if publish[0].special & kernel.SPECIAL_PRODUCER]
    if not numbered:
        return [(publish, None) for publish in publishes]
    labels = broker.deduplication.admit_all(channel, numbered)
    return [
        (publish, labels.get(publish[0]))
        for publish in publishes
        if publish[0] in labels or not publish[0].special & kernel.SPECIAL_PRODUCER
    ]


def _is_kept(routed: "Sequence[tuple[kernel.Message, Sequence[kernel.Queue], int, Label | None]]") -> bool:
    """Whether the log will have one of these messages."""
    return any(
        any(queue.logged and (message.persistent or queue.owner.stream is not None) for queue in queues)
        for message, queues, _, _ in routed
    )


def _settles_kept(channel: kernel.Channel, settlements: Sequence[tuple[int, Sequence[int], bool]]) -> bool:
    """Whether one of these settlements goes to the log."""
    if not settlements:
        return False
    kept = {
        tag
        for tag, (queue, *_, message) in zip(channel.outstanding(0, True), channel.unacked(), strict=True)
        if message.kept and queue.logged
    }
    return any(not requeue and not kept.isdisjoint(tags) for _, tags, requeue in settlements)


def _present(vhost: "Vhost", targets: Sequence[Target], without: kernel.Queue | None) -> list[kernel.Queue]:
    """The queues that have these names now, each once."""
    places = [vhost.find_destination(target) if isinstance(target, str) else target for target in targets]
    present = {place.kernel: None for place in places if place is not None and not place.kernel.deleted}
    return [queue for queue in present if queue is not without]
