"""pika's asyncio adapter uses callbacks; these coroutines wait for the callback that a test needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.channel import Channel

PATIENCE_S = 20.0


async def called(start: Callable[[Callable[..., None]], object]) -> Any:
    """Passes a callback to `start`, and waits for its last argument."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def on_call(*arguments: Any) -> None:
        if not future.done():
            future.set_result(arguments[-1] if arguments else None)

    start(on_call)
    return await asyncio.wait_for(future, PATIENCE_S)


async def open_connection(parameters: pika.connection.Parameters) -> AsyncioConnection:
    future: asyncio.Future[AsyncioConnection] = asyncio.get_running_loop().create_future()
    AsyncioConnection(
        parameters,
        on_open_callback=future.set_result,
        on_open_error_callback=lambda _, error: future.set_exception(error),
    )
    return await asyncio.wait_for(future, PATIENCE_S)


async def close_connection(connection: AsyncioConnection) -> None:
    if not connection.is_closed:
        closed = called(connection.add_on_close_callback)
        connection.close()
        await closed


async def open_channel(connection: AsyncioConnection) -> Channel:
    channel: Channel = await called(lambda callback: connection.channel(on_open_callback=callback))
    return channel


@asynccontextmanager
async def asyncio_channel(parameters: pika.connection.Parameters) -> AsyncIterator[Channel]:
    connection = await open_connection(parameters)
    try:
        yield await open_channel(connection)
    finally:
        await close_connection(connection)
