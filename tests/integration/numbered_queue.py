"""A queue whose messages are numbers, filled and emptied by a client."""

from __future__ import annotations

import pika

from .waiting import PATIENCE_S, wait_until


def fill_queue(parameters: pika.connection.Parameters, queue: str, first: int, end: int, size: int = 0) -> None:
    """Publishes persistent messages with confirms; bodies are filled up to this size."""
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        for number in range(first, end):
            body = (b"%d" % number).ljust(size)
            channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2))


def take_all(
    parameters: pika.connection.Parameters, queue: str, count: int, patience_s: float = PATIENCE_S
) -> list[tuple[int, bool]]:
    """Receives so many messages, which are all; returns their numbers, each with whether `redelivered` is set."""
    found: list[tuple[int, bool]] = []

    def came() -> bool:
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            while True:
                method, _, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return len(found) >= count
                found.append((int(body), method.redelivered))

    wait_until(came, f"{count} messages in '{queue}'", patience_s)
    assert len(found) == count
    return found
