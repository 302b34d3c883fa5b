"""A broker that stops and starts again, or refuses to, and clients whose connections it may have broken."""

from __future__ import annotations

import contextlib
import gc
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

from .watched_broker import WatchedBroker

PERSISTENT = pika.BasicProperties(delivery_mode=2)
REFUSAL_PATIENCE_S = 30


class RestartingBroker(WatchedBroker):
    """Its clients' connections end with `end`, also those that it broke off itself."""

    def __init__(self, directory: Path, *options: str) -> None:
        super().__init__(directory, *options)
        self._connections: list[pika.BlockingConnection] = []

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def connect(self) -> pika.BlockingConnection:
        connection = pika.BlockingConnection(pika.URLParameters(self.url))
        self._connections.append(connection)
        return connection

    def channel(self) -> BlockingChannel:
        channel = self.connect().channel()
        channel.confirm_delivery()
        return channel

    def restart(self, *, cleanly: bool) -> BlockingChannel:
        if cleanly:
            assert self.stop() == 0
        else:
            self.kill()
        self.start()
        return self.channel()

    def refusal(self) -> str:
        """What it says when it is started and does not go on: one line, and no traceback."""
        result = subprocess.run(self._command, capture_output=True, text=True, timeout=REFUSAL_PATIENCE_S, check=False)
        assert result.returncode == 1
        assert "Traceback" not in result.stderr
        return result.stderr.splitlines()[-1]

    def wait_for_end(self) -> str:
        """It ends by itself: with a code that says so and words, which are returned, but no traceback."""
        assert self._process is not None
        assert self._process.wait(REFUSAL_PATIENCE_S) == 1
        assert "Traceback" not in self.log_text()
        return self.log_text().splitlines()[-1]

    def drop_connections(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(AMQPError):
                connection.close()
        self._connections.clear()
        gc.collect()

    def end(self) -> None:
        # First: a client that is held back would wait for its close to be answered.
        if self.alive:
            self.kill()
        self.drop_connections()


@contextlib.contextmanager
def ended(broker: RestartingBroker) -> Iterator[RestartingBroker]:
    try:
        yield broker
    finally:
        broker.end()
