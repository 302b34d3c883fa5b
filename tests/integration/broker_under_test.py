"""The broker of the tests: one of ours, started for them, or the one that PANDOMQ_TEST_URL names."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import pika
from pika.exceptions import AMQPChannelError, AMQPConnectionError

from .cluster.under_test import ClusterUnderTest
from .watched_broker import WatchedBroker

CONNECTION_LIFE_S = 120.0


@dataclass(frozen=True)
class BrokerUnderTest:
    url: str
    process: WatchedBroker | ClusterUnderTest | None
    """None if the broker was not started by the tests."""
    is_reference: bool
    """True for RabbitMQ itself."""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or "127.0.0.1"

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 5672

    @property
    def user(self) -> str:
        return unquote(urlsplit(self.url).username or "guest")

    @property
    def password(self) -> str:
        return unquote(urlsplit(self.url).password or "guest")

    def parameters(self, **overrides: object) -> pika.URLParameters:
        """Connection parameters for pika; an override is an attribute of its Parameters class."""
        parameters = pika.URLParameters(self.url)
        for attribute, value in overrides.items():
            setattr(parameters, attribute, value)
        return parameters

    def connect(self, **overrides: object) -> pika.BlockingConnection:
        """Opens a blocking pika connection with a time limit: pika itself would wait for an answer for ever."""
        connection = pika.BlockingConnection(self.parameters(**overrides))
        too_long = AMQPConnectionError(f"the test did not end within {CONNECTION_LIFE_S} s")
        impl = connection._impl
        impl.ioloop.call_later(CONNECTION_LIFE_S, lambda: impl.is_closed or impl._terminate_stream(too_long))
        return connection

    def url_at(self, port: int, host: str = "127.0.0.1") -> str:
        """The same login at another address: a proxy, another interface."""
        parts = urlsplit(self.url)
        return f"amqp://{parts.username}:{parts.password}@{host}:{port}{parts.path}"


class SomewhereInACluster(BrokerUnderTest):
    """Names a different broker of a cluster each time."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        super().__init__("", process=cluster, is_reference=False)
        object.__setattr__(self, "_cluster", cluster)

    def __getattribute__(self, attribute: str) -> Any:
        if attribute == "url":
            return object.__getattribute__(self, "_cluster").choose().url
        return super().__getattribute__(attribute)


def is_rabbitmq(url: str) -> bool:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    properties = connection._impl.server_properties
    connection.close()
    # Our broker has that name as well, and its own beside it.
    return properties.get("product") == "RabbitMQ" and "pandomq_version" not in properties


@dataclass
class Names:
    """Returns names that no other test uses, and deletes objects that were declared under them."""

    broker: BrokerUnderTest
    prefix: str = field(default_factory=lambda: f"it.{uuid.uuid4().hex[:10]}")
    _queues: list[str] = field(default_factory=list)
    _exchanges: list[str] = field(default_factory=list)

    def queue(self, suffix: str = "queue") -> str:
        name = f"{self.prefix}.{suffix}"
        self._queues.append(name)
        return name

    def exchange(self, suffix: str = "exchange") -> str:
        name = f"{self.prefix}.{suffix}"
        self._exchanges.append(name)
        return name

    def delete_all(self) -> None:
        if not self._queues and not self._exchanges:
            return
        connection = self.broker.connect()
        channel = connection.channel()
        for queue in self._queues:
            try:
                channel.queue_delete(queue)
            except AMQPChannelError:  # An exclusive queue of another connection: it is deleted with that connection.
                channel = connection.channel()
        for exchange in self._exchanges:
            channel.exchange_delete(exchange)
        connection.close()
