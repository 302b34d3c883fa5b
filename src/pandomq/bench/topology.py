"""Queues, exchange and bindings of a load: declared before it runs, deleted after it, under unique names."""

import secrets
from collections.abc import Iterator, Sequence

from pandomq.bench import limits
from pandomq.bench.client import wire
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.url import BrokerUrl
from pandomq.bench.load import Load


class Topology:
    """Names are short, since every message contains the routing key, and all equally long."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self._prefix = f"b{secrets.token_hex(3)}"
        width = len(str(load.queues - 1))
        self.queues = [f"{self._prefix}.{number:0{width}d}" for number in range(load.queues)]
        self.exchange = f"{self._prefix}.x" if load.exchange_type else ""
        self._bindings = max(load.bindings, load.queues)

    @property
    def publish_keys(self) -> list[str]:
        """Routing keys to publish with: all of them, or a sample evenly spread over them."""
        match self.load.exchange_type:
            case "":
                keys: Sequence[str] = self.queues
            case "fanout":
                keys = [""]
            case "topic":
                keys = [f"stock.{number:06d}.eu" for number in self._sample()]
            case _:
                keys = [f"k{number:06d}" for number in self._sample()]
        return list(keys)

    def _sample(self) -> range:
        return range(0, self._bindings, -(-self._bindings // limits.ROTATED_KEYS_MAX))

    def binding_key(self, number: int) -> str:
        match self.load.exchange_type:
            case "fanout":
                return ""
            case "topic":
                # Both wildcards, in front and behind: a broker must not gain from an optimization for only one shape of
                # pattern.
                return f"stock.{number:06d}.*" if number % 2 else f"*.{number:06d}.#"
            case _:
                return f"k{number:06d}"

    def declare(self, session: LoadSession) -> None:
        load = self.load
        if self.exchange:
            session.call(
                wire.exchange_declare(CHANNEL, self.exchange, load.exchange_type, {}), wire.EXCHANGE_DECLARE_OK
            )
        if load.private_queues:
            return
        declares = (
            wire.queue_declare(CHANNEL, name, load.queue_arguments, durable=load.durable) for name in self.queues
        )
        session.call_all(declares, wire.QUEUE_DECLARE_OK)
        if self.exchange:
            session.wait_longer()
            session.call_all(self._binds(), wire.QUEUE_BIND_OK)

    def _binds(self) -> Iterator[bytes]:
        for number in range(self._bindings):
            queue = self.queues[number % len(self.queues)]
            yield wire.queue_bind(CHANNEL, queue, self.exchange, self.binding_key(number))

    def open_consumer(self, url: BrokerUrl, number: int) -> LoadSession:
        """A connection that consumes its share of the queues, all on one channel."""
        load = self.load
        session = LoadSession(url)
        mine = [self.queues[at] for at in self._share(number)]
        if load.private_queues:
            self._declare_private(session, mine)
        if load.prefetch:
            session.call(wire.basic_qos(CHANNEL, load.prefetch), wire.BASIC_QOS_OK)
        # Deliveries start while later consumers are being declared, so it cannot wait for answers: no-wait.
        for index, queue in enumerate(mine):
            session.send(
                wire.basic_consume(
                    CHANNEL, queue, f"c{index:04d}", load.consumer_arguments, auto_ack=load.auto_ack, no_wait=True
                )
            )
        return session

    def _share(self, number: int) -> range:
        load = self.load
        if load.consumers >= load.queues:
            return range(number % load.queues, number % load.queues + 1)
        return range(number, load.queues, load.consumers)

    def _declare_private(self, session: LoadSession, names: list[str]) -> None:
        for name in names:
            session.call(
                wire.queue_declare(CHANNEL, name, self.load.queue_arguments, exclusive=True), wire.QUEUE_DECLARE_OK
            )
            if self.exchange:
                session.call(wire.queue_bind(CHANNEL, name, self.exchange, self.binding_key(0)), wire.QUEUE_BIND_OK)

    def delete(self, session: LoadSession) -> None:
        session.wait_longer()
        if not self.load.private_queues:
            session.call_all((wire.queue_delete(CHANNEL, name) for name in self.queues), wire.QUEUE_DELETE_OK)
        if self.exchange:
            session.call(wire.exchange_delete(CHANNEL, self.exchange), wire.EXCHANGE_DELETE_OK)
