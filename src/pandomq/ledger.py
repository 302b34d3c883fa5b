"""What a publisher was promised and what a consumer saw, written down by themselves, for `pandomq pipeline audit`.

A ledger is a file of JSON lines; docs/pipelines.md has its form. It belongs to one process at a time, which may go on
with it after a crash. What is written is worth something only if it is written at the right moment:

    published   before the message is sent                 confirmed   after its confirm has come
    delivered   when it has come, before anything else     acked       before the ack is sent
    rejected    before the message is rejected for good    purged      before a queue is purged

So whoever is killed in between has promised too little, never too much: an ack that nobody wrote down cannot have been
sent, and a confirm that was written down has come. Needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Final

VERSION: Final = 1
KINDS: Final = ("opened", "published", "confirmed", "delivered", "acked", "rejected", "purged")
LINE_BYTES_MAX: Final = 64 * 1024
"""Names and ids of AMQP have 255 bytes at most; a line that is longer is none."""


class Ledger:
    """Each line is handed to the operating system at once and whole: it outlives the process, not the machine."""

    def __init__(self, path: str | Path, vhost: str = "/", *, sync: bool = False) -> None:
        """Goes on behind what is there. With `sync` each line is on the disk before the call returns."""
        self._vhost = vhost
        self._sync = sync
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            # Whoever wrote before was cut off in the middle of a line.
            os.write(self._file, b"\n")
        self._write({"kind": "opened", "version": VERSION})

    def published(
        self,
        message_id: str,
        *,
        exchange: str = "",
        routing_key: str = "",
        queue: str | None = None,
        channel: int = 0,
        at_s: float | None = None,
    ) -> None:
        """To an exchange with a key; or, if the publisher knows, to a queue."""
        self._write({"kind": "published"} | _target(exchange, routing_key, queue) | _message(message_id, channel), at_s)

    def confirmed(
        self,
        message_id: str,
        *,
        exchange: str = "",
        routing_key: str = "",
        queue: str | None = None,
        channel: int = 0,
        at_s: float | None = None,
    ) -> None:
        """By an ack of the broker; a nack is no confirm, and not written down."""
        self._write({"kind": "confirmed"} | _target(exchange, routing_key, queue) | _message(message_id, channel), at_s)

    def delivered(
        self, queue: str, message_id: str, *, redelivered: bool = False, channel: int = 0, at_s: float | None = None
    ) -> None:
        line = {"kind": "delivered", "queue": queue, "redelivered": redelivered}
        self._write(line | _message(message_id, channel), at_s)

    def acked(self, queue: str, message_id: str, *, channel: int = 0, at_s: float | None = None) -> None:
        self._write({"kind": "acked", "queue": queue} | _message(message_id, channel), at_s)

    def rejected(self, queue: str, message_id: str, *, channel: int = 0, at_s: float | None = None) -> None:
        """Without its going back to the queue; a message that goes back is not written down."""
        self._write({"kind": "rejected", "queue": queue} | _message(message_id, channel), at_s)

    def purged(self, queue: str, *, at_s: float | None = None) -> None:
        """Somebody purges or deletes the queue: what is in it leaves unseen."""
        self._write({"kind": "purged", "queue": queue}, at_s)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: dict[str, object], at_s: float | None = None) -> None:
        """`at_s` is the time if the caller has looked already: seconds since 1970."""
        line["time"] = round(time.time() if at_s is None else at_s, 6)
        if self._vhost != "/":
            line["vhost"] = self._vhost
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        if len(data) > LINE_BYTES_MAX:
            raise ValueError(f"a line of a ledger has at most {LINE_BYTES_MAX} bytes, not {len(data)}")
        os.write(self._file, data)
        if self._sync:
            os.fsync(self._file)


def _target(exchange: str, routing_key: str, queue: str | None) -> dict[str, object]:
    return {"queue": queue} if queue is not None else {"exchange": exchange, "routing_key": routing_key}


def _message(message_id: str, channel: int) -> dict[str, object]:
    found: dict[str, object] = {"message_id": message_id}
    return found | {"channel": channel} if channel else found
