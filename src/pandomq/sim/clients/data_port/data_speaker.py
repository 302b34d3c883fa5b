"""A client of the data port of the current root; it repeats requests that were not answered.

It has no AMQP connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq import data_form, kernel
from pandomq.chunk_form import BadChunk, MessageRow
from pandomq.sim.clients.client import INTERNAL_ERROR, SimulatedClient
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.network.data_wire import DataWire

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.machine import Machine
    from pandomq.sim.scene import Scene

PATIENCE_MS: Final = 300
TRANSIENT: Final = (data_form.NOT_THE_ROOT, data_form.NOT_NOW, data_form.NOT_FOUND, data_form.OFFSET_GONE)
"""Refusals that a later request, or one to another broker, may not get. The client's objects may have gone with a root,
or with time."""


class DataSpeaker(SimulatedClient):
    transient: tuple[int, ...] = TRANSIENT
    """The legal refusals; any other refusal breaks a promise."""

    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._wire: DataWire | None = None
        self.awaited: list[str] = []
        """The requests without an answer."""
        self.asked_ms = 0
        """The time of the request whose answer is being handled."""
        self._asked_ms: list[int] = []
        """The times of the requests without an answer."""
        self._round = 0

    # Methods that a kind of client implements.

    def begin(self) -> None:
        """The hello was answered."""
        raise NotImplementedError

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        raise NotImplementedError

    def hear_refusal(self, asked: str, fields: Fields) -> None:
        """A request was refused; the client reconnects afterwards."""

    def choose_machine(self) -> Machine | None:
        """Returns the broker that it connects to; None if there is none now."""
        return next((one for one in self.scene.machines if one.serving and one.awake), None)

    # Connecting and leaving.

    @property
    def gone(self) -> bool:
        return self.leaving

    def leave(self) -> None:
        self.leaving = True
        self._round += 1

    def connect(self) -> None:
        if self.leaving:
            return
        self._round += 1
        self.awaited, self._asked_ms = [], []
        self._wire = None
        machine = None if self.content else self.choose_machine()
        if machine is None or machine.node is None:
            self.come_again(self.random.randint(20, 100))
            return
        self._wire = DataWire(self.scene.agenda, machine, self)
        self.come_again(PATIENCE_MS)
        self.ask("hello", version=data_form.VERSION, user="guest", password="guest", vhost="/")

    def come_again(self, delay_ms: int) -> None:
        """Reconnects after the delay, unless it has done so before."""
        current = self._round

        def again() -> None:
            if self._round == current:
                self.connect()

        self.scene.agenda.after(delay_ms, again)

    def ask(self, ask: str, payload: bytes = b"", **fields: object) -> None:
        assert self._wire is not None
        self.awaited.append(ask)
        self._asked_ms.append(self.scene.agenda.now_ms)
        self._wire.ask(ask, payload, **fields)

    def wire_disconnected(self, wire: DataWire) -> None:
        if wire is self._wire:
            self._turn_away()

    @property
    def machine(self) -> Machine | None:
        """Returns the broker that it is connected to, if that has had the same process since."""
        return self._wire.machine if self._wire is not None and self._wire.alive else None

    def leave_broker(self) -> None:
        """Disconnects, and connects to a broker again after a while."""
        self._turn_away()

    def _turn_away(self) -> None:
        self._wire = None
        self.come_again(self.random.randint(20, 80))

    def answered(self, wire: DataWire, fields: Fields, payload: bytes) -> None:
        if wire is not self._wire or not self.awaited or self.leaving:
            return
        asked, self.asked_ms = self.awaited.pop(0), self._asked_ms.pop(0)
        self.scene.trace.detail(self.name, f"< {asked}: {fields}")
        code = fields.get("error")
        if code is not None:
            if code == INTERNAL_ERROR:
                self.hear_failure()
            elif code not in self.transient:
                raise BrokenPromise("legal requests are served", f"{self.name} asked to {asked}, and received {fields}")
            self.hear_refusal(asked, fields)
            self._turn_away()
            return
        # The client waits as long as it receives answers.
        self._round += 1
        self.come_again(PATIENCE_MS)
        if asked == "hello":
            self.begin()
            return
        try:
            self.hear(asked, fields, payload)
        except BadChunk:
            # As `data_client` does, it reads the chunk from another broker, or later.
            self.scene.on_damage(wire.machine)
            self._turn_away()

    def go_on(self, delay_ms: int) -> None:
        """Continues after the delay with the next request, on the same connection."""
        current, self._round = self._round + 1, self._round + 1

        def begin() -> None:
            if self._round == current and self._wire is not None and not self.leaving:
                self.come_again(PATIENCE_MS)
                self.begin()

        self.scene.agenda.after(delay_ms, begin)
        self.come_again(delay_ms + PATIENCE_MS)


def rows_of(fields: Fields, payload: bytes) -> list[MessageRow]:
    """Returns the messages of all chunks in the answer to a read."""
    rows: list[MessageRow] = []
    at = 0
    for size in fields["sizes"]:
        chunk = kernel.Chunk.open(payload[at : at + size])
        at += size
        rows += [MessageRow(*chunk.row(position)) for position in range(chunk.count)]
    return rows
