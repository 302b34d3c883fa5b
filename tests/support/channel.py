"""One channel, and the actions on channels that tests use most."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.support.closing import check_close
from tests.support.fields import content_header
from tests.support.frames import BODY, HEADER, PATIENCE_S
from tests.support.methods import Method

if TYPE_CHECKING:
    from tests.support.client import Connection


class Channel:
    """One channel of a connection; of its state it keeps only the number of publishes since confirm.select."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.number = number
        self._published: int | None = None
        self._unanswered: set[int] = set()

    def send(self, name: str, **arguments: Any) -> None:
        self.connection.send(name, self.number, **arguments)

    def receive(self, timeout_s: float = PATIENCE_S) -> Method:
        return self.connection.receive(self.number, timeout_s)

    def expect(self, name: str, timeout_s: float = PATIENCE_S) -> Method:
        return self.connection.expect(name, self.number, timeout_s)

    def rpc(self, name: str, **arguments: Any) -> Method:
        self.send(name, **arguments)
        return self.expect(name + "-ok")

    def publish(
        self,
        body: bytes | str = b"",
        routing_key: str = "",
        exchange: str = "",
        *,
        mandatory: bool = False,
        immediate: bool = False,
        **properties: Any,
    ) -> None:
        """Sends a whole publish: method, header and as many body frames as the agreed frame size requires."""
        if self._published is not None:
            self._published += 1
            self._unanswered.add(self._published)
        raw = body.encode() if isinstance(body, str) else body
        self.send("basic.publish", exchange=exchange, routing_key=routing_key, mandatory=mandatory, immediate=immediate)
        self.send_content(raw, **properties)

    def send_content(self, body: bytes, **properties: Any) -> None:
        self.connection.send_frame(HEADER, self.number, content_header(len(body), properties))
        room = self.connection.frame_max - 8
        for start in range(0, len(body), room):
            self.connection.send_frame(BODY, self.number, body[start : start + room])

    # Frequent actions

    def declare_queue(self, queue: str = "", **options: Any) -> str:
        """Declare a queue (exclusive unless said otherwise) and give its name."""
        options.setdefault("exclusive", True)
        name: str = self.rpc("queue.declare", queue=queue, **options).queue
        return name

    def declare_exchange(self, exchange: str, kind: str, **options: Any) -> str:
        self.rpc("exchange.declare", exchange=exchange, type=kind, **options)
        return exchange

    def bind(self, queue: str, exchange: str, routing_key: str = "", **arguments: Any) -> None:
        self.rpc("queue.bind", queue=queue, exchange=exchange, routing_key=routing_key, arguments=arguments)

    def consume(self, queue: str, consumer_tag: str = "", **options: Any) -> str:
        tag: str = self.rpc("basic.consume", queue=queue, consumer_tag=consumer_tag, **options).consumer_tag
        return tag

    def counts(self, queue: str) -> tuple[int, int]:
        """Returns the numbers of ready messages and of consumers."""
        found = self.rpc("queue.declare", queue=queue, passive=True)
        return found.message_count, found.consumer_count

    def get(self, queue: str, *, no_ack: bool = True) -> Method | None:
        self.send("basic.get", queue=queue, no_ack=no_ack)
        method = self.receive()
        if method.name == "basic.get-empty":
            return None
        assert method.name == "basic.get-ok", method
        return method

    def drain(self, queue: str) -> list[bytes]:
        """Returns the bodies of all ready messages, in order; the queue is empty afterwards."""
        found = []
        while (method := self.get(queue)) is not None:
            found.append(method.body)
        return found

    def delivery(self, timeout_s: float = PATIENCE_S) -> Method:
        return self.expect("basic.deliver", timeout_s)

    def bodies(self, count: int) -> list[bytes]:
        return [self.delivery().body for _ in range(count)]

    def confirmed(self) -> Method:
        """Returns the next publisher confirm; a nack fails."""
        return self.expect("basic.ack")

    def publish_confirmed(self, *args: Any, **options: Any) -> None:
        self.publish(*args, **options)
        self.confirmed()

    @contextlib.contextmanager
    def settling(self, how: str = "asis") -> Iterator[None]:
        """Publishes in the body of the `with` have reached their queues at its end; returns are not expected."""
        if self._published is None:
            self.rpc("confirm.select")
            self._published = 0
        with self.connection.in_segments(how):
            yield
        while self._unanswered:
            method = self.receive()
            assert method.name in ("basic.ack", "basic.nack"), method
            first = 0 if method.multiple else method.delivery_tag
            self._unanswered -= set(range(first, method.delivery_tag + 1))

    def expect_nothing(self) -> None:
        """Nothing was sent on this channel: a round trip brings its own answer and nothing before it."""
        for _ in range(2):
            assert self.rpc("channel.flow", active=True).active

    def expect_close(self, code: int, text: str, cause: str) -> None:
        """The broker closes this channel for this reason; the answer frees its number."""
        check_close(self.expect("channel.close"), code, text, cause)
        self.send("channel.close-ok")

    def refused(self, code: int, text: str, name: str, **arguments: Any) -> None:
        """Sending this method closes the channel in this way."""
        self.send(name, **arguments)
        self.expect_close(code, text, name)

    def refused_hard(self, code: int, text: str, name: str, **arguments: Any) -> None:
        """Sending this method closes the connection in this way."""
        self.send(name, **arguments)
        self.connection.expect_close(code, text, name)
