"""Records of a publisher's confirms and a consumer's deliveries, written by the clients, for `pandomq pipeline audit`.

A ledger is a file of JSON lines; docs/pipelines.md has its form. It belongs to one process at a time, which may
continue it after a crash. A record is valid only if it is written at the right moment:

    published   before the message is sent                 confirmed   after its confirm has come
    delivered   when it has come, before anything else     acked       before the ack is sent
    rejected    before the message is rejected for good    purged      before a queue is purged

So after a crash in between the ledger claims too little, never too much: an ack that is not in it cannot have been
sent, and a confirm that is in it has arrived. It needs only the standard library.
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
"""Names and ids of AMQP have 255 bytes at most; a longer line is malformed."""


class Ledger:
    """Each line is passed to the operating system at once, as a whole: it survives a crash of the process, not of the
    machine."""

    def __init__(self, path: str | Path, vhost: str = "/", *, sync: bool = False) -> None:
        """Continues an existing file. With `sync` each line is on disk before the call returns."""
        self._vhost = vhost
        self._sync = sync
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            # The writer before was interrupted in the middle of a line.
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
        """To an exchange with a key; or to a queue, if the publisher knows it."""
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
        """By an ack of the broker; a nack is no confirm, and is not recorded."""
        self._write({"kind": "confirmed"} | _target(exchange, routing_key, queue) | _message(message_id, channel), at_s)

    def delivered(
        self, queue: str, message_id: str, *, redelivered: bool = False, channel: int = 0, at_s: float | None = None
    ) -> None:
        line = {"kind": "delivered", "queue": queue, "redelivered": redelivered}
        self._write(line | _message(message_id, channel), at_s)

    def acked(self, queue: str, message_id: str, *, channel: int = 0, at_s: float | None = None) -> None:
        self._write({"kind": "acked", "queue": queue} | _message(message_id, channel), at_s)

    def rejected(self, queue: str, message_id: str, *, channel: int = 0, at_s: float | None = None) -> None:
        """Without requeue; a message that is requeued is not recorded."""
        self._write({"kind": "rejected", "queue": queue} | _message(message_id, channel), at_s)

    def purged(self, queue: str, *, at_s: float | None = None) -> None:
        """A client purges or deletes the queue: its messages are removed without delivery."""
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
        """`at_s` is the time, if the caller has it already: seconds since 1970."""
        line["time"] = round(time.time() if at_s is None else at_s, 6)
        if self._vhost != "/":
            line["vhost"] = self._vhost
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        if len(data) > LINE_BYTES_MAX:
            raise ValueError(f"a line of a ledger is limited to {LINE_BYTES_MAX} bytes, not {len(data)}")
        os.write(self._file, data)
        if self._sync:
            os.fsync(self._file)


def _target(exchange: str, routing_key: str, queue: str | None) -> dict[str, object]:
    return {"queue": queue} if queue is not None else {"exchange": exchange, "routing_key": routing_key}


def _message(message_id: str, channel: int) -> dict[str, object]:
    found: dict[str, object] = {"message_id": message_id}
    return found | {"channel": channel} if channel else found
