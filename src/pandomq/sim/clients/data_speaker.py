"""A client of the data port: at the root, whoever that is; what it has no answer to it asks again.

It has no AMQP connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq import data_form
from pandomq.sim.clients.client import Client
from pandomq.sim.data_wire import DataWire
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.scene import Scene

PATIENCE_MS: Final = 300
TRANSIENT: Final = (data_form.NOT_THE_ROOT, data_form.NOT_NOW, data_form.NOT_FOUND, data_form.OFFSET_GONE)
"""Refusals that say: elsewhere, or later. (What it had there may have gone with a root, or with time.)"""


class DataSpeaker(Client):
    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._wire: DataWire | None = None
        self.awaited: list[str] = []
        """What was asked and not answered."""
        self._round = 0

    # What a kind of client does.

    @property
    def idle(self) -> bool:
        """It has nothing to ask now."""
        raise NotImplementedError

    def begin(self) -> None:
        """It has said hello."""
        raise NotImplementedError

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        raise NotImplementedError

    def hear_refusal(self, asked: str, code: int) -> None:
        """It comes again afterwards."""

    # Coming and going.

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
        self.awaited = []
        self._wire = None
        root = next((one for one in self.scene.machines if one.serving and one.awake), None)
        if root is None or root.node is None or self.idle:
            self.come_again(self.random.randint(20, 100))
            return
        self._wire = DataWire(self.scene.agenda, root, self)
        self.come_again(PATIENCE_MS)
        self.ask("hello", version=data_form.VERSION, user="guest", password="guest", vhost="/")

    def come_again(self, delay_ms: int) -> None:
        """Unless it does so before."""
        current = self._round

        def again() -> None:
            if self._round == current:
                self.connect()

        self.scene.agenda.after(delay_ms, again)

    def ask(self, ask: str, payload: bytes = b"", **fields: object) -> None:
        assert self._wire is not None
        self.awaited.append(ask)
        self._wire.ask(ask, payload, **fields)

    def hung_up(self, wire: DataWire) -> None:
        if wire is self._wire:
            self._turn_away()

    def _turn_away(self) -> None:
        self._wire = None
        self.come_again(self.random.randint(20, 80))

    def answered(self, wire: DataWire, fields: Fields, payload: bytes) -> None:
        if wire is not self._wire or not self.awaited or self.leaving:
            return
        asked = self.awaited.pop(0)
        self.scene.trace.detail(self.name, f"< {asked}: {fields}")
        code = fields.get("error")
        if code is not None:
            if code not in TRANSIENT:
                raise BrokenPromise("legal requests are served", f"{self.name} asked to {asked}, and heard {fields}")
            self.hear_refusal(asked, code)
            self._turn_away()
            return
        # It is patient as long as there are answers.
        self._round += 1
        self.come_again(PATIENCE_MS)
        if asked == "hello":
            self.begin()
        else:
            self.hear(asked, fields, payload)

    def go_on(self, delay_ms: int) -> None:
        """With what is next, on the same connection."""
        current, self._round = self._round + 1, self._round + 1

        def begin() -> None:
            if self._round == current and self._wire is not None and not self.leaving:
                self.come_again(PATIENCE_MS)
                self.begin()

        self.scene.agenda.after(delay_ms, begin)
        self.come_again(delay_ms + PATIENCE_MS)
