"""A publisher and a consumer on pika, which know the addresses of all brokers and use the first that accepts them.

A client gives up a connection on which a confirm is overdue: a broker that is frozen or cut off does not close it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.channel import Channel
from pika.exceptions import AMQPError

from .account import Ledger
from .cluster import Cluster

GIVE_UP_S = 1.0
"""The time without an answer after which a client gives up a connection."""
OPEN_PATIENCE_S = 5.0
RETRY_S = 0.05
PACE_S = 0.01
BURST = 3
"""Messages that a publisher sends at each step of its pace."""
WINDOW = 100
ACKS_PER_PROOF = 10
PROOF_EVERY_S = 0.2
PERSISTENT = pika.BasicProperties(delivery_mode=2)


class PikaClient:
    """Opens connections one after the other and works on each until it breaks, or until it is told to end."""

    def __init__(self, cluster: Cluster, ledger: Ledger, arguments: dict[str, Any]) -> None:
        self._cluster = cluster
        self.ledger = ledger
        self._arguments = arguments
        self.ending = False
        self.connections = 0
        self._waiting: dict[int, tuple[str | set[str], float]] = {}
        """The unconfirmed messages, each with its time, by delivery tag."""
        self._tag = 0

    async def run(self) -> None:
        while not self.ending:
            try:
                connection = await self._connect()
            except (AMQPError, OSError, TimeoutError, _Failed):
                await asyncio.sleep(RETRY_S)
                continue
            self.connections += 1
            self._waiting.clear()
            self._tag = 0
            try:
                await self._open(connection)
            except (AMQPError, OSError, TimeoutError, _Failed):
                await asyncio.sleep(RETRY_S)
            finally:
                await self._hang_up(connection)

    async def _connect(self) -> AsyncioConnection:
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # A heartbeat of a second or two would end the connection, too; without one the timeout above is tested.
        more = {"socket_timeout": 0.5, "stack_timeout": 1.0, "heartbeat": 0}
        workflow = AsyncioConnection.create_connection(
            [broker.parameters(**more) for broker in self._cluster], lambda outcome: _settle(opened, outcome)
        )
        try:
            async with asyncio.timeout(OPEN_PATIENCE_S * len(self._cluster.brokers)):
                outcome = await opened
        except TimeoutError:
            workflow.abort()
            raise
        if isinstance(outcome, BaseException):
            raise _Failed(repr(outcome))
        return outcome

    async def _open(self, connection: AsyncioConnection) -> None:
        lost = asyncio.get_running_loop().create_future()
        connection.add_on_close_callback(lambda _, reason: _settle(lost, reason))
        channel: Channel = await self._asked(lost, lambda done: connection.channel(on_open_callback=done))
        channel.add_on_close_callback(lambda _, reason: _settle(lost, reason))
        await self._asked(
            lost,
            lambda done: channel.queue_declare(
                self.ledger.queue, durable=True, arguments=self._arguments, callback=done
            ),
        )
        await self._asked(lost, lambda done: channel.confirm_delivery(self._on_confirm, callback=done))
        work = asyncio.ensure_future(self._work(channel, lost))
        try:
            await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _asked(self, lost: asyncio.Future[Any], ask: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        ask(lambda *arguments: _settle(answer, arguments[-1] if arguments else None))
        async with asyncio.timeout(OPEN_PATIENCE_S):
            await asyncio.wait({answer, lost}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise _Failed("the connection was lost")
        return answer.result()

    async def _work(self, channel: Channel, lost: asyncio.Future[Any]) -> None:
        raise NotImplementedError

    def _publish(self, channel: Channel, queue: str, body: str, meaning: str | set[str]) -> None:
        self._tag += 1
        self._waiting[self._tag] = (meaning, time.monotonic())
        channel.basic_publish("", queue, body.encode(), PERSISTENT)

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        tags = [method.delivery_tag]
        if method.multiple:
            tags = [tag for tag in self._waiting if tag <= method.delivery_tag]
        for tag in tags:
            meaning, _ = self._waiting.pop(tag)
            self._confirmed(meaning, isinstance(method, pika.spec.Basic.Ack))

    def _confirmed(self, meaning: str | set[str], accepted: bool) -> None:
        raise NotImplementedError

    def _overdue(self) -> bool:
        oldest = next(iter(self._waiting.values()), None)
        return oldest is not None and time.monotonic() - oldest[1] > GIVE_UP_S

    async def _hang_up(self, connection: AsyncioConnection) -> None:
        """Closes at once: a frozen broker would never answer a close."""
        if not connection.is_closed:
            connection._terminate_stream(AMQPError("given up"))
            # After two turns of the loop pika has released the socket.
            for _ in range(2):
                await asyncio.sleep(0)


class PikaPublisher(PikaClient):
    def __init__(self, cluster: Cluster, ledger: Ledger, arguments: dict[str, Any], name: str) -> None:
        super().__init__(cluster, ledger, arguments)
        self._name = name

    async def _work(self, channel: Channel, lost: asyncio.Future[Any]) -> None:
        while channel.is_open and not self._overdue():
            if self.ending and not self._waiting:
                return
            for _ in range(BURST):
                if len(self._waiting) < WINDOW and not self.ending:
                    body = self.ledger.send(f"{self._name}.{self.connections}")
                    self._publish(channel, self.ledger.queue, body, body)
            await asyncio.sleep(PACE_S)

    def _confirmed(self, meaning: str | set[str], accepted: bool) -> None:
        assert isinstance(meaning, str)
        if accepted:
            self.ledger.confirm(meaning)
        else:
            self.ledger.refused.add(meaning)


class PikaConsumer(PikaClient):
    """Acks, and now and then publishes on the same channel: its confirm proves the acks before it."""

    async def _work(self, channel: Channel, lost: asyncio.Future[Any]) -> None:
        unproven: set[str] = set()
        proofs = f"{self.ledger.queue}.proofs"
        await self._asked(
            lost,
            lambda done: channel.queue_declare(
                proofs, durable=True, arguments={"x-max-length": 10} | self._arguments, callback=done
            ),
        )
        await self._asked(lost, lambda done: channel.basic_qos(prefetch_count=WINDOW, callback=done))

        def on_message(_: Channel, method: Any, __: Any, body: bytes) -> None:
            name = body.decode()
            self.ledger.receive(name, bool(method.redelivered))
            self.ledger.acked.add(name)
            channel.basic_ack(method.delivery_tag)
            unproven.add(name)

        channel.basic_consume(self.ledger.queue, on_message)
        proven_at = time.monotonic()
        while channel.is_open and not self._overdue():
            if self.ending and not self._waiting:
                return
            due = time.monotonic() - proven_at > PROOF_EVERY_S
            if len(unproven) >= ACKS_PER_PROOF or due:
                proven_at = time.monotonic()
                self._publish(channel, proofs, "proof", set(unproven))
                unproven.clear()
            await asyncio.sleep(PACE_S)
        self.ledger.give_up(WINDOW)

    def _confirmed(self, meaning: str | set[str], accepted: bool) -> None:
        assert isinstance(meaning, set)
        if accepted:
            self.ledger.proven |= meaning


class _Failed(Exception):
    """A connection could not be opened, or was lost on the way."""


def _settle(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
