"""A simulated connection to a broker's data port: requests and answers as bytes, in order, until either end is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from pandomq import data_form
from pandomq.journal.effects import FileName
from pandomq.node.data.effects import FileRange, Part

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.agenda import Agenda
    from pandomq.sim.machine import Machine

LATENCY_MS: Final = 2
PORT: Final = 40_000


class WireEnd(Protocol):
    def answered(self, wire: DataWire, fields: Fields, payload: bytes) -> None: ...

    def hung_up(self, wire: DataWire) -> None: ...


class DataWire:
    """Also the socket that the broker's end has."""

    def __init__(self, agenda: Agenda, machine: Machine, end: WireEnd) -> None:
        self._agenda = agenda
        self._machine = machine
        self._end = end
        self._life = machine.life
        self.open = True
        assert machine.node is not None
        self._client = machine.node.data.accept(self, ("127.0.0.1", PORT), machine.cluster_ms())

    # The client's end.

    @property
    def alive(self) -> bool:
        return self.open and self._machine.life == self._life and self._machine.node is not None

    def ask(self, ask: str, payload: bytes = b"", **fields: object) -> None:
        data = data_form.encode_json({"ask": ask, **fields}, len(payload)) + payload

        def arrive() -> None:
            node = self._machine.node
            if self.alive and node is not None:
                node.data.receive(self._client, data, self._machine.cluster_ms())
                self._machine.wake()

        self._agenda.after(LATENCY_MS, lambda: self._machine.when_running(arrive))

    # The broker's.

    def send(self, parts: Sequence[Part]) -> None:
        files = self._machine.disk.sizes()
        if any(isinstance(part, FileRange) and part.file not in files for part in parts):
            self.abort()
            return
        data = b"".join(self._read(part) if isinstance(part, FileRange) else part for part in parts)

        def taken() -> None:
            node = self._machine.node
            if self.alive and node is not None:
                node.data.sent(self._client, self._machine.cluster_ms())
                self._machine.wake()

        self._agenda.after(1, lambda: self._machine.when_running(taken))
        sizes = data_form.decode_head(data[: data_form.HEAD.size], data_form.DATA_ANSWER_BYTES_MAX)
        begin = data_form.HEAD.size
        fields = data_form.decode_json(data[begin : begin + sizes.json_bytes])
        payload = data[begin + sizes.json_bytes :]
        self._agenda.after(LATENCY_MS, lambda: self._end.answered(self, fields, payload))

    def _read(self, part: FileRange) -> bytes:
        """As the system would, when it sends a file: what is there, synced or not."""
        return self._machine.disk.content(FileName(part.file))[part.offset : part.offset + part.length]

    def close(self) -> None:
        self._agenda.after(LATENCY_MS, self._lose)

    def abort(self) -> None:
        self._agenda.after(LATENCY_MS, self._lose)

    def _lose(self) -> None:
        node = self._machine.node
        if self.alive and node is not None:
            node.data.lost(self._client)
            self._machine.wake()
        if self.open:
            self.open = False
            self._end.hung_up(self)

    def pause_reading(self) -> None:
        """Requests are few."""

    def resume_reading(self) -> None: ...
