"""Frequent actions of pika tests: publish messages, receive them, inspect them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

from .waiting import PATIENCE_S, POLL_S, pump


@dataclass(frozen=True)
class Delivery:
    method: Basic.Deliver
    properties: BasicProperties
    body: bytes

    @property
    def tag(self) -> int:
        return int(self.method.delivery_tag)


@dataclass(frozen=True)
class Fetched:
    method: Basic.GetOk
    properties: BasicProperties
    body: bytes


class Mailbox:
    """A consumer that keeps its deliveries, in order."""

    def __init__(self, channel: BlockingChannel, queue: str, **consume: object) -> None:
        self.channel = channel
        self.deliveries: list[Delivery] = []
        self.tag: str = channel.basic_consume(queue, self._on_message, **consume)

    def _on_message(self, _: BlockingChannel, method: Basic.Deliver, properties: BasicProperties, body: bytes) -> None:
        self.deliveries.append(Delivery(method, properties, body))

    @property
    def bodies(self) -> list[bytes]:
        return [delivery.body for delivery in self.deliveries]

    def wait_for(self, count: int) -> list[Delivery]:
        pump(self.channel.connection, lambda: len(self.deliveries) >= count, f"{count} deliveries")
        return self.deliveries


def put(channel: BlockingChannel, queue: str, bodies: Iterable[bytes], **properties: object) -> None:
    """Publishes to a queue through the default exchange."""
    for body in bodies:
        channel.basic_publish("", queue, body, BasicProperties(**properties))


def take(channel: BlockingChannel, queue: str, *, auto_ack: bool = True) -> Fetched:
    """Takes one message with basic.get, and waits for it if it has not come yet."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        method, properties, body = channel.basic_get(queue, auto_ack=auto_ack)
        if method is not None:
            return Fetched(method, properties, body)
        time.sleep(POLL_S)
    raise AssertionError(f"no message came to {queue!r} within {PATIENCE_S} s")


def take_all(channel: BlockingChannel, queue: str) -> list[bytes]:
    """Empties a queue to which no message is under way."""
    bodies: list[bytes] = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return bodies
        bodies.append(body)


def is_empty(channel: BlockingChannel, queue: str) -> bool:
    return bool(channel.queue_declare(queue, passive=True).method.message_count == 0)
