"""Publishes in bursts, with confirms and a window; messages that a lost connection left unconfirmed are published
again.

It purges queues of kinds that may be swept now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.fieldtable import FieldTable
from pandomq.methods import (
    BasicAck,
    BasicNack,
    BasicPublish,
    ConfirmSelect,
    ConfirmSelectOk,
    ExchangeDeclareOk,
    Method,
    QueueBindOk,
    QueueDeclareOk,
    QueuePurge,
    QueuePurgeOk,
)
from pandomq.properties import PERSISTENT, Properties, encode_header
from pandomq.sim.clients.client import CHANNEL, FRAME_MAX, SimulatedClient
from pandomq.sim.ledger import BrokenPromise, ClientTransaction, SentMessage
from pandomq.sim.queues import DEAD_LETTERS, NOWHERE, VALUE_KEY, QueueKind
from pandomq.wire.codec import encode_content

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

BODY_SIZES: Final = (0, 0, 0, 10, 200, 900, 5_000)
VALUE_KEYS: Final = 3
PURGE_CHANCE: Final = 0.3


class MessageOptions(NamedTuple):
    """The properties in which a message differs from the default."""

    headers: FieldTable | None = None
    expiration: str | None = None
    mandatory: bool = False
    filling: bytes | None = None
    """The filling of the body, after the message's number."""
    routing_key: str = ""
    """The routing key at the exchange, or the one to use instead of the queue's name."""
    persistent: bool | None = None
    """Whether it is persistent; None: drawn at random."""
    unroutable: bool = False
    """Whether it is routed to no queue."""


class Publishing:
    """The messages of one channel: numbers, encodes and records them."""

    def __init__(self, client: SimulatedClient, producer: str | None = None) -> None:
        self._client = client
        self._producer = producer
        """The producer name under which the broker numbers the messages, too."""
        self.channel = client.scene.ledger.new_channel()
        self.count = 0

    def message(
        self,
        queues: Sequence[QueueKind],
        exchange: str = "",
        transaction: ClientTransaction | None = None,
        form: MessageOptions | None = None,
        label: tuple[str, int] | None = None,
    ) -> tuple[SentMessage, bytes]:
        """Returns a new message for these queues, through the exchange or by the name of the only queue. The label is
        the name of its producer and its number for that producer, where that is not the number of the message."""
        client, random = self._client, self._client.random
        self.count += 1
        if form is not None and form.unroutable:
            queues = (NOWHERE,)
        life, sent_ms = (0, 0) if client.cable is None else client.scene.here_and_now(client.cable)
        value_key = None
        headers: FieldTable | None = None
        if any(kind.last_value for kind in queues):
            # A key has one publisher, so the last value is known.
            value_key = f"{client.name}-{random.randrange(VALUE_KEYS)}"
            headers = {VALUE_KEY: value_key}
        if self._producer is not None:
            label = (self._producer, self.count)
        if label is not None:
            headers = {"x-producer": label[0], "x-sequence": label[1]}
        persistent = transaction is not None or label is not None or random.random() < 0.8
        if form is not None and form.headers is not None:
            headers = {**(headers or {}), **form.headers}
        if form is not None and form.persistent is not None:
            persistent = form.persistent
        priority = random.randrange(6) if any(kind.priorities for kind in queues) else 0
        message = SentMessage(
            self.channel,
            self.count,
            tuple(kind.name for kind in queues),
            persistent,
            priority,
            value_key,
            life,
            sent_ms,
            transaction,
        )
        key = b"%d:%d" % (self.channel, self.count)
        filling = None if form is None else form.filling
        body = key + b"|" + (bytes(random.choice(BODY_SIZES)) if filling is None else filling)
        properties = Properties(
            headers=headers,
            delivery_mode=PERSISTENT if persistent else None,
            priority=priority or None,
            expiration=None if form is None else form.expiration,
        )
        ledger = client.scene.ledger
        ledger.messages[key] = message
        client.scene.observer.published(message)
        routing_key = form.routing_key if form is not None else ""
        routing_key = routing_key or ("" if exchange else queues[0].name)
        method = BasicPublish(exchange, routing_key, form is not None and form.mandatory)
        return message, encode_content(CHANNEL, method, encode_header(len(body), properties), body, FRAME_MAX)

    def messages(
        self, count: int, kind: QueueKind, form: MessageOptions | None = None
    ) -> tuple[list[SentMessage], bytes]:
        """Returns new messages for this queue, and their bytes."""
        made = [self.message([kind], form=form) for _ in range(count)]
        return [message for message, _ in made], b"".join(octets for _, octets in made)


class Publisher(SimulatedClient):
    topology: Sequence[Method] = ()
    """Exchanges and bindings that it declares with its queues."""

    def __init__(self, scene: Scene, name: str, queues: Sequence[QueueKind], exchange: str, wanted: int) -> None:
        super().__init__(scene, name)
        self._queues = queues
        self._declares = [DEAD_LETTERS, *queues] if any(kind.dead_letters_to for kind in queues) else list(queues)
        self._exchange = exchange
        self._wanted = wanted
        """The number of messages to be confirmed, and how many more when the faults are over."""
        self._window = self.random.choice((1, 5, 50))
        self._burst_max = self.random.choice((1, 4, 20))
        self._think_ms = self.random.choice((0, 5, 40))
        self._publishing: Publishing | None = None
        self._unconfirmed: dict[int, SentMessage] = {}
        self._declared = 0
        self.confirmed = 0

    def opened(self) -> None:
        self._publishing = Publishing(self)
        self._unconfirmed.clear()
        self._declared = 0
        self.send(ConfirmSelect())
        for kind in self._declares:
            self.declare(kind)
        if self.topology:
            self.send(*self.topology)

    def disconnected(self) -> None:
        self._publishing = None

    @property
    def content(self) -> bool:
        return self.confirmed >= self._wanted and not self._unconfirmed

    def end_wish(self) -> None:
        """Publishes a few more messages, to show that the broker still confirms."""
        self._wanted = self.confirmed + len(self._unconfirmed) + 2
        self._later()

    def form(self) -> MessageOptions | None:
        """Returns the form of the next message; None for the default."""
        return None

    def formed(self, message: SentMessage, form: MessageOptions | None) -> None:
        """The message is about to be sent."""

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case BasicAck(tag, multiple):
                self._settle(tag, multiple, refused=False)
                self._later()
            case BasicNack(tag, multiple):
                self._settle(tag, multiple, refused=True)
                self._later()
            case QueueDeclareOk():
                self._declared += 1
                if self._declared == len(self._declares):
                    self._publish()
            case ConfirmSelectOk() | QueuePurgeOk():
                pass
            case ExchangeDeclareOk() | QueueBindOk() if self.topology:
                pass
            case _:
                raise self.unexpected(method)

    def _settle(self, tag: int, multiple: bool, *, refused: bool) -> None:
        assert self.cable is not None
        tags = [number for number in self._unconfirmed if number <= tag] if multiple else [tag]
        for number in tags:
            message = self._unconfirmed.pop(number, None)
            if message is None:
                raise BrokenPromise(
                    "confirms", f"{self.name} received a confirm for publish {number}, which was already confirmed"
                )
            self.confirmed += 1
            if refused:
                if not any(self.scene.ledger.kinds[queue].refuses for queue in message.queues):
                    raise BrokenPromise("confirms", f"{message} was refused by {message.queues}")
                self.scene.observer.refused(message, self.cable)
            else:
                self.scene.observer.confirmed(message, self.cable)

    def _later(self) -> None:
        publishing = self._publishing

        def again() -> None:
            if self._publishing is publishing:
                self._publish()

        self.scene.agenda.after(self.random.randint(0, self._think_ms), again)

    def _publish(self) -> None:
        if self._publishing is None or not self.ready or self._declared < len(self._declares):
            return
        room = min(self._window - len(self._unconfirmed), self._wanted - self.confirmed - len(self._unconfirmed))
        count = min(room, self.random.randint(1, self._burst_max))
        if count <= 0:
            return
        if self._queues and self._queues[0].swept and self.random.random() < PURGE_CHANCE:
            # Consumers must not receive later messages before the log has this purge.
            self.send(QueuePurge(self._queues[0].name))
            self.scene.on_tempted()
            self._later()
            return
        parts = []
        for _ in range(count):
            form = self.form()
            message, octets = self._publishing.message(self._queues, self._exchange, form=form)
            self.formed(message, form)
            self._unconfirmed[message.number] = message
            parts.append(octets)
        first, last = message.number - count + 1, message.number
        self.scene.trace.detail(self.name, f"> publishes {message.channel}:{first} to {last}")
        self.send_bytes(b"".join(parts))
        if self._queues and (self._queues[0].drops or self._queues[0].tempts):
            self.scene.on_tempted()
        if room > count:
            self._later()
