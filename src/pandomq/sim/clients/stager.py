"""Publishes in staged batches, as a sink of a stream of data does: parts are staged, then one commit names them.

What it has no answer to it does again, at whoever is root then, under the name of another attempt; some attempts are
staged and never named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq import data_form
from pandomq.sim.clients.client import Client
from pandomq.sim.clients.publisher import Publishing
from pandomq.sim.data_wire import DataWire
from pandomq.sim.ledger import BrokenPromise, Message

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

PATIENCE_MS: Final = 300
QUERY: Final = "query"
TRANSIENT: Final = (data_form.NOT_THE_ROOT, data_form.NOT_NOW, data_form.NOT_FOUND)
"""Refusals that say: elsewhere, or later. (What was staged may have gone with a root.)"""


class Stager(Client):
    """Has no AMQP connection: what it says goes to the data port."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, wanted: int) -> None:
        super().__init__(scene, name)
        self._kind = kind
        self._wanted = wanted
        self._publishing = Publishing(self)
        self._wire: DataWire | None = None
        self._batch = 0
        self._attempt = 0
        self._parts: list[list[tuple[list[Message], bytes]]] = []
        """Of the batch, by partition."""
        self._awaited: list[str] = []
        """What was asked and not answered."""
        self._round = 0

    @property
    def content(self) -> bool:
        return self._batch >= self._wanted

    @property
    def gone(self) -> bool:
        return self.leaving

    def end_wish(self) -> None:
        self._wanted = self._batch + 2

    def leave(self) -> None:
        self.leaving = True
        self._round += 1

    def connect(self) -> None:
        """To the root, whoever that is; again and again."""
        if self.leaving:
            return
        self._round += 1
        self._awaited = []
        self._wire = None
        root = next((one for one in self.scene.machines if one.serving and one.awake), None)
        if root is None or root.node is None or self._batch >= self._wanted:
            self.scene.agenda.after(self.random.randint(20, 100), self.connect)
            return
        self._wire = DataWire(self.scene.agenda, root, self)
        self._come_again(PATIENCE_MS)
        self._ask("hello", version=data_form.VERSION, user="guest", password="guest", vhost="/")

    def _come_again(self, delay_ms: int) -> None:
        """Unless it does so before."""
        current = self._round

        def again() -> None:
            if self._round == current:
                self.connect()

        self.scene.agenda.after(delay_ms, again)

    def _ask(self, ask: str, payload: bytes = b"", **fields: object) -> None:
        assert self._wire is not None
        self._awaited.append(ask)
        self._wire.ask(ask, payload, **fields)

    def hung_up(self, wire: DataWire) -> None:
        if wire is self._wire:
            self._turn_away()

    def _turn_away(self) -> None:
        self._wire = None
        self._come_again(self.random.randint(20, 80))

    def answered(self, wire: DataWire, fields: Fields) -> None:
        if wire is not self._wire or not self._awaited or self.leaving:
            return
        asked = self._awaited.pop(0)
        self.scene.trace.detail(self.name, f"< {asked}: {fields}")
        code = fields.get("error")
        if code is not None:
            if code not in TRANSIENT:
                raise BrokenPromise("legal requests are served", f"{self.name} asked to {asked}, and heard {fields}")
            self._turn_away()
        elif asked == "hello":
            self._stage()
        elif asked == "stage" and not self._awaited:
            self._commit()
        elif asked == "commit":
            self._committed()

    # A batch.

    def _stage(self) -> None:
        if not self._parts:
            self._parts = [
                [self._part() for _ in range(self.random.randint(1, 2))] for _ in range(self.random.randint(1, 2))
            ]
        self._attempt += 1
        if self.random.random() < 0.3:
            messages, octets = self._part()
            for message in messages:
                message.discarded = True
            self._stage_part(0, f"lost-{self._attempt}", 0, octets)
        for partition, parts in enumerate(self._parts):
            for part, (_, octets) in enumerate(parts):
                self._stage_part(partition, f"a-{self._attempt}", part, octets)

    def _stage_part(self, partition: int, attempt: str, part: int, octets: bytes) -> None:
        place = {"query": QUERY, "batch": self._batch, "partition": partition, "attempt": attempt, "part": part}
        # Without its queue it would be published to nobody.
        self._ask("stage", octets, queue=self._kind.name, **place)

    def _part(self) -> tuple[list[Message], bytes]:
        made = [self._publishing.message([self._kind]) for _ in range(self.random.randint(1, 3))]
        return [message for message, _ in made], b"".join(octets for _, octets in made)

    def _commit(self) -> None:
        attempts = [[partition, f"a-{self._attempt}", len(parts)] for partition, parts in enumerate(self._parts)]
        self._ask("commit", query=QUERY, batch=self._batch, attempts=attempts)

    def _committed(self) -> None:
        for parts in self._parts:
            for messages, _ in parts:
                for message in messages:
                    self.scene.observer.confirmed_at_root(message)
        self._parts = []
        self._batch += 1
        self._come_again(self.random.randint(0, 30))
