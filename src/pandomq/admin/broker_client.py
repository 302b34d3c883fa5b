"""A local client of the broker as coroutines: it sends the AMQP methods for a request over HTTP."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from pandomq.admin import limits
from pandomq.admin.refusals import unavailable
from pandomq.errors import Fault
from pandomq.methods import (
    BasicAck,
    BasicGet,
    BasicGetEmpty,
    BasicNack,
    BasicPublish,
    BasicReturn,
    ChannelClose,
    ConfirmSelect,
    Method,
)
from pandomq.node.clients.local_client import LocalClient, MethodReply

if TYPE_CHECKING:
    from pandomq.node.node import Node
    from pandomq.runtime.clock import Clock


class Done(NamedTuple):
    answered: int
    """Number of answers before the fault."""
    fault: Fault | None


class BrokerClient:
    """One request at a time; every coroutine raises the Fault that the broker answers."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._said: deque[MethodReply | Fault] = deque()
        self._heard = asyncio.Event()
        self.local: LocalClient | None = None

    def hear(self, answer: MethodReply | Fault) -> None:
        """The local client's callback."""
        self._said.append(answer)
        self._heard.set()

    async def ask(self, method: Method) -> Method:
        self._send(method)
        return (await self._next()).method

    async def ask_all(self, methods: Sequence[Method]) -> Done:
        """Sends them at once. A fault ends it: nothing more is sent by this client afterwards."""
        self._send(*methods)
        for answered in range(len(methods)):
            try:
                await self._next()
            except Fault as fault:
                return Done(answered, fault)
        return Done(len(methods), None)

    async def publish(self, method: BasicPublish, header: bytes, body: bytes) -> bool:
        """True if a queue accepted it. Returns once it is as safe as after a confirm."""
        await self.ask(ConfirmSelect(False))
        assert self.local is not None
        self.local.publish(method, header, body)
        self._wake()
        returned = False
        while True:
            answer = (await self._next()).method
            if isinstance(answer, BasicReturn):
                returned = True
            elif isinstance(answer, BasicAck | BasicNack):
                return isinstance(answer, BasicAck) and not returned

    async def get(self, queue: str, *, no_ack: bool = False) -> MethodReply | None:
        """A message, or None if there is none. Without `no_ack` it goes back to the queue if it is not settled."""
        self._send(BasicGet(queue, no_ack))
        answer = await self._next()
        return None if isinstance(answer.method, BasicGetEmpty) else answer

    async def settle(self, method: BasicAck | BasicNack) -> None:
        """Returns once it took effect."""
        self._send(method, ChannelClose(200, "", 0, 0))
        await self._next()

    def _send(self, *methods: Method) -> None:
        assert self.local is not None
        self.local.send(*methods)
        self._wake()

    async def _next(self) -> MethodReply:
        try:
            async with asyncio.timeout(limits.ANSWER_S_MAX):
                while not self._said:
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            raise unavailable("the broker cannot commit changes at present: try again later") from None
        answer = self._said.popleft()
        if isinstance(answer, Fault):
            raise answer
        return answer


@asynccontextmanager
async def broker_client(
    node: Node, clock: Clock, wake: Callable[[], None], *, user: str, vhost: str
) -> AsyncIterator[BrokerClient]:
    """Raises ConnectionFault if the vhost does not exist or the user has no access."""
    client = BrokerClient(wake)
    client.local = node.local_clients.open(user=user, vhost=vhost, on_answer=client.hear, now_ms=clock.now_ms())
    try:
        yield client
    finally:
        client.local.close(clock.now_ms())
        wake()
