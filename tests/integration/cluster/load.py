"""Clients at work in a thread of their own, while a case causes faults; afterwards the account is checked.

On pika a publisher and a consumer with the addresses of all brokers; on aio-pika's robust connection others behind a
load balancer; and transactions. `wait_for_progress` returns once each of them has made progress.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pika.exceptions import AMQPError

from tests.integration.waiting import wait_until

from .account import Account, Ledger
from .balancer import Balancer
from .cluster import PATIENCE_S, Cluster
from .pika_clients import PikaConsumer, PikaPublisher
from .robust_clients import RobustConsumer, RobustPublisher
from .transaction_clients import TRANSACTION_MESSAGES, Mover, Places, WholePublisher

PROGRESS = 20
"""The number of further confirms for each queue."""
ENDING_PATIENCE_S = 40.0
ROBUST_PUBLISHERS = 2


class Load:
    def __init__(
        self, cluster: Cluster, account: Account, prefix: str, arguments: dict[str, Any] | None = None
    ) -> None:
        """`arguments` are those of the queues."""
        self._cluster = cluster
        self.account = account
        self._arguments = arguments or {}
        self._places = Places(prefix)
        self._pika = account.ledger(f"{prefix}.pika")
        self._robust = account.ledger(f"{prefix}.robust")
        self._publishers: list[Any] = []
        self._consumers: list[Any] = []
        self._ended: list[str] = []
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="clients")

    def start(self) -> None:
        self._thread.start()
        self.wait_for_progress()

    async def _run(self) -> None:
        balancer = Balancer(self._cluster)
        await balancer.open()
        pika_ends = (self._cluster, self._pika, self._arguments)
        robust_ends = (balancer, self._robust, self._arguments)
        transactions = (balancer, self.account.transactions, self._places)
        self._publishers = [
            PikaPublisher(*pika_ends, "p"),
            *(RobustPublisher(*robust_ends, f"r{number}") for number in range(ROBUST_PUBLISHERS)),
            WholePublisher(*transactions),
            Mover(*transactions),
        ]
        self._consumers = [PikaConsumer(*pika_ends), RobustConsumer(*robust_ends)]
        clients = [*self._publishers, *self._consumers]
        tasks = [asyncio.create_task(client.run(), name=type(client).__name__) for client in clients]
        try:
            done, hanging = await asyncio.wait(tasks)
            for task in (*done, *hanging):
                if not task.cancelled() and task.exception() is not None:
                    self._ended.append(f"{task.get_name()} ended with {task.exception()!r}")
        finally:
            await balancer.close()

    # While it runs.

    def wait_for_progress(self, more: int = PROGRESS) -> None:
        """Waits until each queue has so many more confirms, deliveries and transactions than now."""
        goals = [(ledger, len(ledger.confirmed) + more, len(ledger.received) + more) for ledger in self._ledgers]
        transactions = self.account.transactions
        committed, moved = len(transactions.committed) + 2, len(transactions.moved) + 2

        def reached() -> bool:
            assert self._thread.is_alive(), f"the clients ended: {self._ended}"
            return (
                all(len(ledger.confirmed) >= sent and len(ledger.received) >= got for ledger, sent, got in goals)
                and len(transactions.committed) >= committed
                and len(transactions.moved) >= moved
            )

        self._wait(reached, f"progress of the clients (now {self.account.summary()})")

    def confirmed(self) -> int:
        return self.account.confirmed

    @property
    def _ledgers(self) -> list[Ledger]:
        return [self._pika, self._robust]

    def _wait(self, condition: Any, what: str) -> None:
        try:
            wait_until(condition, what, PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.account.summary()}\n{self._cluster.story()}") from None

    # Its end.

    def finish(self) -> None:
        """Publishers stop; consumers receive the remaining messages; then the account is checked with the rest."""
        for client in self._publishers:
            client.ending = True
        self._wait(lambda: all(self._taken(ledger) for ledger in self._ledgers), "the consumers to catch up")
        self.stop()
        assert self._ended == []
        for ledger in self._ledgers:
            ledger.check_left(self._drain(ledger.queue, self._arguments))
        transactions = self.account.transactions
        transactions.check_whole(self._bodies(self._places.whole), TRANSACTION_MESSAGES)
        transactions.check_moved(
            self._bodies(self._places.source, self._places.source_arguments),
            self._bodies(self._places.rejected),
            self._bodies(self._places.moved),
        )
        self._delete_queues()

    def stop(self) -> None:
        for client in (*self._publishers, *self._consumers):
            client.ending = True
        self._thread.join(ENDING_PATIENCE_S)
        assert not self._thread.is_alive(), "the clients do not end"
        # The sockets of the clients are collected now, and not during another test.
        gc.collect()

    def _taken(self, ledger: Ledger) -> bool:
        """A lost message must not make this wait for ever: the account will name it."""
        return ledger.confirmed <= ledger.received or self._idle(ledger)

    def _idle(self, ledger: Ledger) -> bool:
        return self._count(ledger.queue) == 0

    def _count(self, queue: str) -> int:
        try:
            connection = self._cluster.connect(socket_timeout=2, stack_timeout=3)
        except (AMQPError, OSError):
            return -1
        count: int = connection.channel().queue_declare(queue, passive=True).method.message_count
        connection.close()
        return count

    def _bodies(self, queue: str, arguments: dict[str, Any] | None = None) -> list[str]:
        return [body for body, _ in self._drain(queue, arguments)]

    def _drain(self, queue: str, arguments: dict[str, Any] | None = None) -> list[tuple[str, bool]]:
        """Returns the bodies, each with whether `redelivered` is set. They stay until all were seen."""
        connection = self._cluster.connect()
        channel = connection.channel()
        channel.queue_declare(queue, durable=True, arguments=arguments)
        left: list[tuple[str, bool]] = []
        while True:
            method, _, body = channel.basic_get(queue, auto_ack=False)
            if method is None or body is None:
                break
            left.append((body.decode(), bool(method.redelivered)))
        connection.close()
        return left

    def _delete_queues(self) -> None:
        connection = self._cluster.connect()
        channel = connection.channel()
        places = self._places
        for queue in (places.whole, places.source, places.rejected, places.moved):
            channel.queue_delete(queue)
        for ledger in self._ledgers:
            channel.queue_delete(ledger.queue)
            channel.queue_delete(f"{ledger.queue}.proofs")
        connection.close()


@contextmanager
def at_work(load: Load) -> Iterator[Load]:
    """Ends the clients in any case; checks the account if no error occurred before."""
    try:
        load.start()
        yield load
        load.finish()
    finally:
        load.stop()
