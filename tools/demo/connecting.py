"""The connections of the demo's clients: each client has a list of addresses, and uses the first that accepts it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Event
from typing import NamedTuple

import pika
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPError

CONNECT_AGAIN_S = 0.02
TURN_S = 0.002


class Broker(NamedTuple):
    name: str
    url: str


def connect(brokers: Sequence[Broker], end: Event) -> BlockingConnection:
    """Connects to the first broker that accepts the client."""
    while True:
        with contextlib.suppress(AMQPError, OSError):
            return pika.BlockingConnection([pika.URLParameters(broker.url) for broker in brokers])
        if end.is_set():
            raise RuntimeError("no broker accepts the connection")
        time.sleep(CONNECT_AGAIN_S)


def name_of(connection: BlockingConnection, brokers: Sequence[Broker]) -> str:
    """Returns the name of the broker at the other end."""
    port = connection._impl.params.port
    return next(broker.name for broker in brokers if pika.URLParameters(broker.url).port == port)


def close(connection: BlockingConnection) -> None:
    with contextlib.suppress(AMQPError, OSError):
        connection.close()
