"""How the demo's clients come to a broker: each knows some addresses, and takes the first that lets it in."""

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
    """To the first of them that lets us in."""
    while True:
        with contextlib.suppress(AMQPError, OSError):
            return pika.BlockingConnection([pika.URLParameters(broker.url) for broker in brokers])
        if end.is_set():
            raise RuntimeError("no broker lets us in")
        time.sleep(CONNECT_AGAIN_S)


def name_of(connection: BlockingConnection, brokers: Sequence[Broker]) -> str:
    """Where it leads to."""
    port = connection._impl.params.port
    return next(broker.name for broker in brokers if pika.URLParameters(broker.url).port == port)


def close(connection: BlockingConnection) -> None:
    with contextlib.suppress(AMQPError, OSError):
        connection.close()
