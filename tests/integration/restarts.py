"""A broker that stops and starts again, or fails to start, and clients whose connections it may have closed."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

from tests.support import starting

from .watched_broker import WatchedBroker

PERSISTENT = pika.BasicProperties(delivery_mode=2)
REFUSAL_PATIENCE_S = 30


class RestartingBroker(WatchedBroker):
    """Its clients' connections end with `end`, also those that the broker closed itself."""

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
        """Starts it, requires that the start fails with a message and no traceback, and returns the message."""
        with tempfile.TemporaryFile() as output:
            process = starting.start(self._command, output, os.environ)
            try:
                code = process.wait(REFUSAL_PATIENCE_S)
            finally:
                process.kill()
                process.wait()
            output.seek(0)
            said = output.read().decode()
        assert code == 1, said
        assert "Traceback" not in said, said
        return said.splitlines()[-1]

    def wait_for_end(self) -> str:
        """Waits until it ends by itself, with an error code and without a traceback; returns its output."""
        assert self._process is not None
        assert self._process.wait(REFUSAL_PATIENCE_S) == 1
        text = self.log_text()
        assert "Traceback" not in text, text
        return text.splitlines()[-1]

    def drop_connections(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(AMQPError):
                connection.close()
        self._connections.clear()
        gc.collect()

    def end(self) -> None:
        # The process ends first: otherwise a blocked client would wait for the answer to its close.
        if self.alive:
            self.kill()
        self.drop_connections()


@contextlib.contextmanager
def ended(broker: RestartingBroker) -> Iterator[RestartingBroker]:
    try:
        yield broker
    finally:
        broker.end()
