"""Publishes in bursts, with confirms and a window; what a lost connection left unconfirmed comes again.

Queues of a kind that may be swept are purged in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.fieldtable import FieldTable
from pandomq.methods import (
    BasicAck,
    BasicNack,
    BasicPublish,
    ConfirmSelect,
    ConfirmSelectOk,
    Method,
    QueueDeclareOk,
    QueuePurge,
    QueuePurgeOk,
)
from pandomq.properties import PERSISTENT, Properties, encode_header
from pandomq.sim.clients.client import CHANNEL, FRAME_MAX, Client
from pandomq.sim.ledger import BrokenPromise, Message, Transaction
from pandomq.sim.queues import DEAD_LETTERS, VALUE_KEY, QueueKind
from pandomq.wire.codec import encode_content

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

BODY_SIZES: Final = (0, 0, 0, 10, 200, 900, 5_000)
VALUE_KEYS: Final = 3
PURGE_CHANCE: Final = 0.3


class Publishing:
    """One channel's messages: numbers them, encodes them, and writes them down."""

    def __init__(self, client: Client, producer: str | None = None) -> None:
        self._client = client
        self._producer = producer
        """Under which name it numbers its messages for the broker, too."""
        self.channel = client.scene.ledger.new_channel()
        self.count = 0

    def message(
        self, queues: Sequence[QueueKind], exchange: str = "", transaction: Transaction | None = None
    ) -> tuple[Message, bytes]:
        """A new message for these queues, through the exchange or by the name of the only queue."""
        client, random = self._client, self._client.random
        self.count += 1
        life, sent_ms = (0, 0) if client.cable is None else client.scene.here_and_now(client.cable)
        value_key = None
        headers: FieldTable | None = None
        if any(kind.last_value for kind in queues):
            # A key has one publisher, so that it is known which value is the last.
            value_key = f"{client.name}-{random.randrange(VALUE_KEYS)}"
            headers = {VALUE_KEY: value_key}
        if self._producer is not None:
            headers = {"x-producer": self._producer, "x-sequence": self.count}
        persistent = transaction is not None or self._producer is not None or random.random() < 0.8
        priority = random.randrange(6) if any(kind.priorities for kind in queues) else 0
        message = Message(
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
        body = key + b"|" + bytes(random.choice(BODY_SIZES))
        properties = Properties(
            headers=headers,
            delivery_mode=PERSISTENT if persistent else None,
            priority=priority or None,
        )
        ledger = client.scene.ledger
        ledger.messages[key] = message
        client.scene.observer.published(message)
        method = BasicPublish(exchange, "" if exchange else queues[0].name)
        return message, encode_content(CHANNEL, method, encode_header(len(body), properties), body, FRAME_MAX)


class Publisher(Client):
    def __init__(self, scene: Scene, name: str, queues: Sequence[QueueKind], exchange: str, wanted: int) -> None:
        super().__init__(scene, name)
        self._queues = queues
        self._declares = [DEAD_LETTERS, *queues] if any(kind.dead_letters_to for kind in queues) else list(queues)
        self._exchange = exchange
        self._wanted = wanted
        """Messages to be confirmed, and how many more when the faults are over."""
        self._window = self.random.choice((1, 5, 50))
        self._burst_max = self.random.choice((1, 4, 20))
        self._think_ms = self.random.choice((0, 5, 40))
        self._publishing: Publishing | None = None
        self._unconfirmed: dict[int, Message] = {}
        self._declared = 0
        self.confirmed = 0

    def opened(self) -> None:
        self._publishing = Publishing(self)
        self._unconfirmed.clear()
        self._declared = 0
        self.send(ConfirmSelect())
        for kind in self._declares:
            self.declare(kind)

    def disconnected(self) -> None:
        self._publishing = None

    @property
    def content(self) -> bool:
        return self.confirmed >= self._wanted and not self._unconfirmed

    def end_wish(self) -> None:
        """A few more: the broker has to show that it still confirms."""
        self._wanted = self.confirmed + len(self._unconfirmed) + 2
        self._later()

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
            case _:
                raise BrokenPromise("legal requests are served", f"{self.name} heard {method}")

    def _settle(self, tag: int, multiple: bool, *, refused: bool) -> None:
        assert self.cable is not None
        tags = [number for number in self._unconfirmed if number <= tag] if multiple else [tag]
        for number in tags:
            message = self._unconfirmed.pop(number, None)
            if message is None:
                raise BrokenPromise("confirms", f"{self.name} was told of publish {number}, which is not open")
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
            # Whoever consumes it must not see what comes next before the log knows of this.
            self.send(QueuePurge(self._queues[0].name))
            self.scene.on_tempted()
            self._later()
            return
        parts = []
        for _ in range(count):
            message, octets = self._publishing.message(self._queues, self._exchange)
            self._unconfirmed[message.number] = message
            parts.append(octets)
        first, last = message.number - count + 1, message.number
        self.scene.trace.detail(self.name, f"> publishes {message.channel}:{first} to {last}")
        self.send_bytes(b"".join(parts))
        if self._queues and self._queues[0].drops:
            self.scene.on_tempted()
        if room > count:
            self._later()
