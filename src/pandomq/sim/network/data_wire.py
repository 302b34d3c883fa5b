"""A simulated connection to a broker's data port: requests and answers as bytes, in order, until either end closes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from pandomq import data_form
from pandomq.journal.effects import FileName
from pandomq.node.data.effects import FileRange, PayloadPart

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.agenda import Agenda
    from pandomq.sim.machine import Machine

LATENCY_MS: Final = 2
PORT: Final = 40_000


class WireEnd(Protocol):
    def answered(self, wire: DataWire, fields: Fields, payload: bytes) -> None: ...

    def wire_disconnected(self, wire: DataWire) -> None: ...


class DataWire:
    """The connection; it is also the broker's socket."""

    def __init__(self, agenda: Agenda, machine: Machine, end: WireEnd) -> None:
        self._agenda = agenda
        self.machine = machine
        self._end = end
        self._life = machine.life
        self.open = True
        assert machine.node is not None
        self._client = machine.node.data.accept(self, ("127.0.0.1", PORT), machine.cluster_ms())

    # The client's end.

    @property
    def alive(self) -> bool:
        return self.open and self.machine.life == self._life and self.machine.node is not None

    def ask(self, ask: str, payload: bytes = b"", **fields: object) -> None:
        data = data_form.encode_json({"ask": ask, **fields}, len(payload)) + payload

        def arrive() -> None:
            node = self.machine.node
            if self.alive and node is not None:
                self.machine.enter(node.data.receive)(self._client, data, self.machine.cluster_ms())
                self.machine.wake()

        self._agenda.after(LATENCY_MS, lambda: self.machine.when_running(arrive))

    # The broker's end.

    def send(self, parts: Sequence[PayloadPart]) -> None:
        files = self.machine.disk.sizes()
        if any(isinstance(part, FileRange) and part.file not in files for part in parts):
            self.abort()
            return
        data = b"".join(self._read(part) if isinstance(part, FileRange) else part for part in parts)

        def taken() -> None:
            node = self.machine.node
            if self.alive and node is not None:
                self.machine.enter(node.data.sent)(self._client, self.machine.cluster_ms())
                self.machine.wake()

        self._agenda.after(1, lambda: self.machine.when_running(taken))
        sizes = data_form.decode_head(data[: data_form.HEAD.size], data_form.DATA_ANSWER_BYTES_MAX)
        begin = data_form.HEAD.size
        fields = data_form.decode_json(data[begin : begin + sizes.json_bytes])
        payload = data[begin + sizes.json_bytes :]
        self._agenda.after(LATENCY_MS, lambda: self._end.answered(self, fields, payload))

    def _read(self, part: FileRange) -> bytes:
        """Reads a range of a file as the operating system does when it sends a file: the current content, synced or
        not."""
        return self.machine.disk.content(FileName(part.file))[part.offset : part.offset + part.length]

    def close(self) -> None:
        self._agenda.after(LATENCY_MS, self._lose)

    def abort(self) -> None:
        self._agenda.after(LATENCY_MS, self._lose)

    def _lose(self) -> None:
        node = self.machine.node
        if self.alive and node is not None:
            self.machine.enter(node.data.disconnected)(self._client)
            self.machine.wake()
        if self.open:
            self.open = False
            self._end.wire_disconnected(self)

    def pause_reading(self) -> None:
        """Does nothing, because requests are few."""

    def resume_reading(self) -> None: ...
