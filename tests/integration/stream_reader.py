"""Frequent actions of tests of streams with pika: declare one, fill it with confirms, read it from any offset on."""

from __future__ import annotations

from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from .waiting import pump


def declare(channel: BlockingChannel, stream: str, **arguments: Any) -> None:
    channel.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream", **arguments})


def fill_confirmed(channel: BlockingChannel, stream: str, first: int, end: int) -> None:
    """Publishes messages with their numbers, and waits for each confirm."""
    channel.confirm_delivery()
    for number in range(first, end):
        channel.basic_publish("", stream, b"%d" % number)


def fill(channel: BlockingChannel, stream: str, first: int, end: int, size_bytes: int = 0) -> None:
    """The same for many messages: when it returns all are committed, and the stream was empty before the first."""
    for number in range(first, end):
        channel.basic_publish("", stream, b"%d" % number + b" " * size_bytes, BasicProperties(app_id=str(number)))
    pump(channel.connection, lambda: committed_end(channel, stream) >= end, f"{end} messages in {stream}")


def committed_end(channel: BlockingChannel, stream: str) -> int:
    """Finds the end by the last message, since retention may have deleted the first ones."""
    last = channel.connection.channel()
    last.basic_qos(prefetch_count=1)
    for _, properties, _ in last.consume(stream, arguments={"x-stream-offset": "last"}, inactivity_timeout=1):
        last.close()
        return 0 if properties is None else int(properties.headers["x-stream-offset"]) + 1
    return 0


class StreamReader:
    """Reads, acknowledges, and checks that offsets follow each other without gap or repetition."""

    def __init__(self, channel: BlockingChannel, stream: str, offset: Any = "first", prefetch: int = 100) -> None:
        self._channel = channel
        self.offsets: list[int] = []
        self.bodies: list[bytes] = []
        channel.basic_qos(prefetch_count=prefetch)
        self.tag = channel.basic_consume(stream, self._take, arguments={"x-stream-offset": offset})

    def _take(self, _: object, method: Any, properties: BasicProperties, body: bytes) -> None:
        assert properties.headers is not None
        offset = properties.headers["x-stream-offset"]
        assert not self.offsets or offset == self.offsets[-1] + 1, f"{offset} after {self.offsets[-1]}"
        assert not method.redelivered
        self.offsets.append(offset)
        self.bodies.append(body)
        self._channel.basic_ack(method.delivery_tag)

    @property
    def numbers(self) -> list[int]:
        """The numbers in the messages."""
        return [int(body) for body in self.bodies]

    def wait_for(self, end: int) -> None:
        """Waits until it has read the message before this offset."""
        pump(self._channel.connection, lambda: self.offsets and self.offsets[-1] >= end - 1, f"offset {end - 1}")

    def read_to(self, end: int) -> list[int]:
        self.wait_for(end)
        return self.offsets
