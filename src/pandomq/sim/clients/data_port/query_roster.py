"""Commits batches of many queries, one at a time, and knows which of the queries the broker remembers (D12).

    remembered    the last batch is committed again with other content: the broker reports it as done, and does nothing
    forgotten     the batches begin anew: a committed batch is published
    not certain   the next batch

Some attempts are staged and left alone: the broker has to drop them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.sim.clients.data_port.data_speaker import DataSpeaker
from pandomq.sim.clients.publisher import Publishing
from pandomq.sim.clients.roster import Names, RosterStep
from pandomq.sim.ledger import SentMessage

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.checkers.counted_once import CountedOnce
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene
    from pandomq.sim.state.memory_model import MemoryModel

ABANDON_CHANCE = 0.2
CALM_WANTED = 16
"""The number of batches that it commits after the faults have ended: enough that queries are evicted and used again."""
CALM_REST_MS = 20


class QueryRoster(DataSpeaker):
    def __init__(
        self,
        scene: Scene,
        name: str,
        kind: QueueKind,
        model: MemoryModel | None,
        checker: CountedOnce,
        *,
        names: int,
        wanted: int,
        rests_ms: tuple[int, ...],
    ) -> None:
        """Without a model it only leaves attempts alone."""
        super().__init__(scene, name)
        self._kind = kind
        self._model = model
        self._checker = checker
        self._names = Names(name, names)
        self._wanted = wanted
        self._rests_ms = rests_ms
        self._publishing = Publishing(self)
        self._attempt = 0
        self._open: tuple[RosterStep, str, int, SentMessage, int] | None = None
        """The uncommitted batch: step, query, batch, message, and the time of its begin in the cluster's time."""

    @property
    def content(self) -> bool:
        return self._wanted <= 0

    def end_wish(self) -> None:
        self._wanted = CALM_WANTED if self._model is not None else 3
        self._rests_ms = tuple(rest_ms for rest_ms in self._rests_ms if rest_ms <= CALM_REST_MS)

    def _now_ms(self) -> int:
        return next((machine.broker_ms for machine in self.scene.machines if machine.serving), 0)

    def begin(self) -> None:
        if self._open is not None:
            self._give_up(self._open[1])
        now_ms = self._now_ms()
        if self.content or not now_ms:
            return
        self._wanted -= 1
        self._attempt += 1
        query = self._names.draw(self.random)
        message, octets = self._publishing.message([self._kind])
        step, batch = RosterStep.NEXT, self._names.numbers[query] + 1
        if self._model is not None:
            step, batch = self._names.choose(query, self.random, self._model, now_ms, self.scene.moving_ms)
        if self._model is None or self.random.random() < ABANDON_CHANCE:
            # The number is above those of all batches that it may commit.
            message.discarded = True
            self._checker.repeated(message)
            batch += 1_000
        else:
            self._open = (step, query, batch, message, now_ms)
        # Without its queue the batch would be published to no queue.
        place = {"query": query, "batch": batch, "partition": 0, "attempt": f"a-{self._attempt}", "part": 0}
        self.ask("stage", octets, queue=self._kind.name, **place)

    def _give_up(self, query: str) -> None:
        assert self._model is not None
        self._open = None
        self._model.doubt(query, self.scene.moving_ms)
        self._names.replace(query)

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        if asked == "stage" and self._open is not None:
            _, query, batch, _, _ = self._open
            self.ask("commit", query=query, batch=batch, attempts=[[0, f"a-{self._attempt}", 1]])
            return
        if asked == "commit" and self._open is not None:
            self._committed(*self._open)
        if not self.content:
            self.go_on(self.random.choice(self._rests_ms))

    def _committed(self, step: RosterStep, query: str, batch: int, message: SentMessage, sent_ms: int) -> None:
        assert self._model is not None
        now_ms, world_ms = self._now_ms(), self.scene.moving_ms
        if step is not RosterStep.REPEAT:
            self.scene.observer.confirmed_at_root(message)
        if not now_ms or (step is RosterStep.REPEAT and not self._model.remembers(query, now_ms, world_ms)):
            self._give_up(query)
            return
        self._open = None
        if step is RosterStep.REPEAT:
            self._checker.repeated(message)
        else:
            self._names.numbers[query] = batch
            self._model.noted(query, sent_ms, now_ms)
