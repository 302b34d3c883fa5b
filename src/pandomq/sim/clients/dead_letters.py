"""Clients of dead-letter cycles, of unroutable messages, and of large messages."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final
from zlib import crc32

from pandomq.methods import (
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicReject,
    BasicReturn,
    ChannelFlow,
    ChannelFlowOk,
    ExchangeDeclare,
    Method,
    QueueBind,
)
from pandomq.properties import read_headers
from pandomq.sim.clients.consumer import ConsumingClient
from pandomq.sim.clients.publisher import MessageOptions, Publisher
from pandomq.sim.ledger import BrokenPromise, SentMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

DEATHS: Final = "`x-death` lists each death"
RETURNS: Final = "unroutable mandatory messages are returned"
IN_ORDER: Final = "requests of a channel are answered in order"
CONTENT: Final = "a message keeps its content"
ROUNDS: Final = 4
"""How often a message is rejected before a client acks it."""
PERHAPS: Final = ExchangeDeclare("perhaps", "direct", durable=True)
HERE: Final = "here"
ASK_CHANCE: Final = 0.3
SIZES: Final = (300, 9_000, 40_000, 140_000)
"""The last size is larger than a frame between brokers."""

Deaths = list[tuple[str, str, int]]
"""Queue, reason and count, the latest first."""


def deaths_of(header: bytes) -> Deaths:
    found = read_headers(header).get("x-death")
    rows = found if isinstance(found, list) else []
    return [(str(row["queue"]), str(row["reason"]), int(row["count"])) for row in rows if isinstance(row, dict)]


class RoundPublisher(Publisher):
    """Publishes to a queue whose dead letters may return to it; it declares all necessary objects first."""

    def __init__(
        self,
        scene: Scene,
        name: str,
        kind: QueueKind,
        wanted: int,
        others: Sequence[QueueKind],
        topology: Sequence[Method] = (),
    ) -> None:
        super().__init__(scene, name, [kind], "", wanted)
        self._declares = [kind, *others]
        self.topology = topology
        self._burst_max = min(self._burst_max, 4)
        self._think_ms = self.random.choice((5, 30, 80))

    def form(self) -> MessageOptions:
        return MessageOptions(filling=bytes(self.random.choice((0, 30, 900))), persistent=True)


class TrailConsumer(ConsumingClient):
    """Consumes the copies of dead messages, and checks their `x-death`."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, expected: Deaths) -> None:
        super().__init__(scene, name, kind)
        self._gets = False
        self._prefetch = 0
        self._expected = expected

    def method(self, method: Method, body: bytes) -> None:
        if isinstance(method, BasicDeliver):
            deaths = deaths_of(self.header)
            if deaths != self._expected:
                message = self.scene.ledger.message_of(body)
                raise BrokenPromise(
                    DEATHS, f"{message} in {self.kind.name} was dead-lettered as {deaths}, not {self._expected}"
                )
        super().method(method, body)


class Rejections:
    """How often each message was rejected by any consumer: a death without a rejection is an error."""

    def __init__(self) -> None:
        self.by_queue: Counter[tuple[str, SentMessage]] = Counter()


class RejectingConsumer(ConsumingClient):
    """Rejects a message until it has made a few rounds, and then acks it."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, rejections: Rejections) -> None:
        super().__init__(scene, name, kind)
        self._gets = False
        self._multiple = False
        self._returns = False
        self._prefetch = self.random.choice((1, 5))
        self._think_ms = min(self._think_ms, 3)
        self._rejections = rejections

    def method(self, method: Method, body: bytes) -> None:
        if not isinstance(method, BasicDeliver):
            super().method(method, body)
            return
        message, deaths = self.scene.ledger.message_of(body), deaths_of(self.header)
        for queue, reason, count in deaths:
            known = self._rejections.by_queue[queue, message]
            if reason != "rejected" or count > known:
                raise BrokenPromise(
                    DEATHS, f"{message} was rejected {known} times by {queue}, and its header has {deaths}"
                )
        if sum(count for _, _, count in deaths) >= ROUNDS:
            super().method(method, body)
            return
        self._rejections.by_queue[self.kind.name, message] += 1
        self.send(self.random.choice((BasicReject(method.delivery_tag), BasicNack(method.delivery_tag))))


class TiringConsumer(ConsumingClient):
    """Returns every message, until the queue reaches its delivery limit (x-delivery-limit)."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, limit: int) -> None:
        super().__init__(scene, name, kind)
        self._gets = False
        self._prefetch = self.random.choice((1, 5))
        self._limit = limit
        self._unsettled: Counter[SentMessage] = Counter()
        self.returned: Counter[SentMessage] = Counter()
        """How often it, or the loss of its connection, returned a message."""

    def disconnected(self) -> None:
        super().disconnected()
        # A message that it never received may have been delivered, and returned, too.
        for message in self.scene.ledger.messages.values():
            if self.kind.name in message.queues:
                self.returned[message] += 1

    def method(self, method: Method, body: bytes) -> None:
        if not isinstance(method, BasicDeliver):
            super().method(method, body)
            return
        message = self.scene.ledger.message_of(body)
        count = read_headers(self.header).get("x-delivery-count", 0)
        if not isinstance(count, int) or count > self._limit:
            raise BrokenPromise(DEATHS, f"{message} is delivered though it came back {count} times")
        self._after(lambda: self._give_back(message, method.delivery_tag))

    def _give_back(self, message: SentMessage, tag: int) -> None:
        self.returned[message] += 1
        self.send(BasicNack(tag, requeue=True))


class TiredConsumer(TrailConsumer):
    """Consumes the messages that were returned too often."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, tiring: TiringConsumer, limit: int) -> None:
        super().__init__(scene, name, kind, [(tiring.kind.name, "delivery_limit", 1)])
        self._tiring = tiring
        self._limit = limit

    def method(self, method: Method, body: bytes) -> None:
        # A broker that loses its way to the root returns what its clients hold, without notice to the clients.
        if isinstance(method, BasicDeliver) and not self.scene.proxied:
            message = self.scene.ledger.message_of(body)
            if self._tiring.returned[message] <= self._limit:
                count = self._tiring.returned[message]
                raise BrokenPromise(
                    DEATHS, f"{message} was dead-lettered after {count} returns, and {self._limit} are allowed"
                )
        super().method(method, body)


class MandatoryPublisher(Publisher):
    """Publishes with one routing key that a queue is bound by, and one without a binding, mostly with `mandatory`."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, wanted: int) -> None:
        super().__init__(scene, name, [kind], PERHAPS.exchange, wanted)
        self.topology = (PERHAPS, QueueBind(kind.name, PERHAPS.exchange, HERE))
        self._think_ms = self.random.choice((0, 20, 60))
        self._forms: dict[SentMessage, MessageOptions] = {}
        self._returned: set[SentMessage] = set()
        self._asked: deque[set[SentMessage]] = deque()
        """For each request without an answer: the messages that must have been returned before the answer."""
        self._epoch = 0

    def opened(self) -> None:
        super().opened()
        self._forms.clear()
        self._asked.clear()
        self._epoch = self.scene.ledger.epoch

    def form(self) -> MessageOptions:
        unroutable = self.random.random() < 0.5
        key = HERE if not unroutable else self.random.choice(("nowhere", "elsewhere"))
        filling = bytes(self.random.choice((0, 50, 3_000)))
        mandatory = self.random.random() < 0.8
        return MessageOptions(
            filling=filling, routing_key=key, mandatory=mandatory, persistent=True, unroutable=unroutable
        )

    def formed(self, message: SentMessage, form: MessageOptions | None) -> None:
        assert form is not None
        self._forms[message] = form

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case BasicReturn():
                self._take_back(self.scene.ledger.message_of(body))
            case ChannelFlowOk():
                early = self._asked.popleft() - self._returned
                if early:
                    raise BrokenPromise(IN_ORDER, f"{self.name} was answered before {min(early, key=str)} came back")
            case _:
                super().method(method, body)

    def _publish(self) -> None:
        super()._publish()
        # A broker that is not the root answers this by itself.
        if self._publishing is not None and self._forms and self.random.random() < ASK_CHANCE:
            forms = self._forms.items()
            self._asked.append({message for message, form in forms if form.unroutable and form.mandatory})
            self.send(ChannelFlow(True))

    def _take_back(self, message: SentMessage) -> None:
        if message.number not in self._unconfirmed:
            raise BrokenPromise(RETURNS, f"{message} came back after its confirm")
        if message in self._returned:
            raise BrokenPromise(RETURNS, f"{message} came back twice")
        form = self._forms[message]
        if not (form.unroutable and form.mandatory) and self._epoch == self.scene.ledger.epoch:
            raise BrokenPromise(RETURNS, f"{message} came back, though a queue gets it, or nobody asked for that")
        self._returned.add(message)

    def _settle(self, tag: int, multiple: bool, *, refused: bool) -> None:
        for number, message in self._unconfirmed.items():
            form = self._forms[message]
            is_settled = number == tag or (multiple and number < tag)
            if is_settled and form.unroutable and form.mandatory and message not in self._returned:
                raise BrokenPromise(RETURNS, f"{message} was confirmed, and did not come back before")
        super()._settle(tag, multiple, refused=refused)


class BigPublisher(Publisher):
    """Publishes messages of several frames, larger than a page or a segment."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, wanted: int, sums: dict[SentMessage, int]) -> None:
        super().__init__(scene, name, [kind], "", wanted)
        self._window = self._burst_max = 1
        self._think_ms = self.random.choice((20, 100))
        self._sums = sums

    def form(self) -> MessageOptions:
        size_bytes = self.random.choice(SIZES)
        return MessageOptions(filling=self.random.randbytes(size_bytes), persistent=True)

    def formed(self, message: SentMessage, form: MessageOptions | None) -> None:
        assert form is not None and form.filling is not None
        self._sums[message] = crc32(form.filling)


class BigConsumer(ConsumingClient):
    """Checks every byte."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, sums: dict[SentMessage, int]) -> None:
        super().__init__(scene, name, kind)
        self._gets = self.random.random() < 0.5
        self._sums = sums

    def method(self, method: Method, body: bytes) -> None:
        if isinstance(method, BasicDeliver | BasicGetOk):
            message = self.scene.ledger.message_of(body)
            if crc32(body.partition(b"|")[2]) != self._sums[message]:
                raise BrokenPromise(CONTENT, f"{message} came with other bytes than it was sent with")
        super().method(method, body)
