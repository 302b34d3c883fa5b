"""Consumes a queue, acks after a while, and has its acks proven by a later confirm on the same channel.

Some consumers return a message now and then; some use basic.get; some consume without acks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicAck,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicQosOk,
    ChannelClose,
    ConfirmSelect,
    ConfirmSelectOk,
    Method,
    QueueDeclareOk,
)
from pandomq.properties import PERSISTENT, Properties, encode_header
from pandomq.sim.clients.client import CHANNEL, FRAME_MAX, SimulatedClient
from pandomq.sim.ledger import BrokenPromise, SentMessage
from pandomq.sim.queues import PROOF, QueueKind
from pandomq.wire.codec import encode_content

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

RETURN_CHANCE: Final = 0.04
REST_MS_MAX: Final = 256
"""A client that uses basic.get and finds its queue empty asks again after a pause, which doubles each time up to this
value: through a broker that is not the root each request costs a dozen events."""
PROOF_BODY: Final = b"proof|"


class ConsumingClient(SimulatedClient):
    def __init__(self, scene: Scene, name: str, kind: QueueKind) -> None:
        super().__init__(scene, name)
        self.kind = self._kind = kind
        self._gets = self.random.random() < 0.2
        # A consumer without acks may lose what was sent to it, and what was about to be sent, so it uses only queues
        # that may drop messages.
        self.no_ack = kind.drops and self.random.random() < 0.3
        self._prefetch = self.random.choice((1, 3, 20, 0))
        self._think_ms = self.random.choice((0, 3, 30))
        self._multiple = self.random.random() < 0.3
        self._returns = self.random.random() < 0.5
        self._rest_ms = 0
        """The longest pause before it asks an empty queue again."""
        self._held: deque[tuple[int, SentMessage]] = deque()
        self._acking = False
        self._unproven: list[SentMessage] = []
        self._proofs: dict[int, list[SentMessage]] = {}
        self._proof_count = 0

    def _forget_deliveries(self) -> None:
        """Deliveries of an earlier connection cannot be acked any more."""
        self._held.clear()
        self._unproven.clear()
        self._proofs.clear()
        self._proof_count = 0
        self._acking = False

    def opened(self) -> None:
        self._forget_deliveries()
        self.send(ConfirmSelect())
        self.declare(PROOF)
        self.declare(self._kind)
        if self._gets:
            self.send(BasicGet(self._kind.name, self.no_ack))
        else:
            self.send(
                BasicQos(prefetch_count=self._prefetch),
                BasicConsume(self._kind.name, self._kind.name, no_ack=self.no_ack),
            )

    def get_queue(self) -> str:
        return self._kind.name

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case BasicDeliver(_, tag) | BasicGetOk(tag):
                self._take(tag, body)
            case BasicAck(tag, multiple):
                self._prove(tag, multiple)
            case BasicGetEmpty():
                self._rest_ms = min(2 * self._rest_ms or 1, REST_MS_MAX)
                if not self.scene.ending:
                    self._get_later()
            case QueueDeclareOk() | BasicQosOk() | BasicConsumeOk() | ConfirmSelectOk():
                pass
            case _:
                raise self.unexpected(method)

    def channel_closed(self, method: ChannelClose) -> None:
        if not self.scene.proxied or "the root changed" not in method.reply_text:
            super().channel_closed(method)
        # It has acked a message whose publish was not durable when the root died, so no confirm may prove that ack.
        self.cut()

    def _take(self, tag: int, body: bytes) -> None:
        message = self.scene.ledger.message_of(body)
        self._rest_ms = 0
        if self.no_ack:
            if self._gets:
                self._get_later()
            return
        self._held.append((tag, message))
        if not self._acking:
            self._acking = True
            self._after(self._settle)

    def _after(self, call: Callable[[], None], rest_ms: int = 0) -> None:
        self.act_later(self.random.randint(0, self._think_ms + rest_ms), call)

    def _get_later(self) -> None:
        self._after(lambda: self.send(BasicGet(self._kind.name, self.no_ack)), self._rest_ms)

    def _settle(self) -> None:
        self._acking = False
        count = len(self._held) if self._multiple else self.random.randint(1, len(self._held))
        chosen = [self._held.popleft() for _ in range(count)]
        if self._returns and self.random.random() < RETURN_CHANCE:
            self.send(*(BasicNack(tag, requeue=True) for tag, _ in chosen))
        else:
            self._ack(chosen)
        if self._held:
            self._acking = True
            self._after(self._settle)
        elif self._gets:
            self._get_later()

    def _ack(self, chosen: list[tuple[int, SentMessage]]) -> None:
        for _, message in chosen:
            self.scene.ledger.settle((self._kind.name, message))
            self._unproven.append(message)
        acks = [BasicAck(chosen[-1][0], True)] if self._multiple else [BasicAck(tag) for tag, _ in chosen]
        self.send(*acks)
        if self.random.random() < 0.5:
            self._ask_proof()

    def _ask_proof(self) -> None:
        self._proof_count += 1
        self._proofs[self._proof_count] = self._unproven
        self._unproven = []
        # Any confirm is a proof, also for a message that no queue receives, or that need not be kept.
        key = self.random.choice((PROOF.name, "nobody"))
        properties = Properties(delivery_mode=self.random.choice((PERSISTENT, None)))
        header = encode_header(len(PROOF_BODY), properties)
        self.send_bytes(encode_content(CHANNEL, BasicPublish("", key), header, PROOF_BODY, FRAME_MAX))

    def _prove(self, tag: int, multiple: bool) -> None:
        numbers = [number for number in self._proofs if number <= tag] if multiple else [tag]
        for number in numbers:
            if number not in self._proofs:
                raise BrokenPromise(
                    "confirms", f"{self.name} received a confirm for publish {number}, which was already confirmed"
                )
            for message in self._proofs.pop(number):
                self.scene.ledger.proven.add((self._kind.name, message))
