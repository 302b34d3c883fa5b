"""Publishes in staged batches, as a streaming sink does: it stages parts, and then one commit names them.

It repeats requests without an answer under the name of another attempt; some attempts are staged and never named. An
attempt that was left alone for long may be gone, after a standstill or a stall of a disk: then it makes another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq import data_form
from pandomq.sim.clients.data_port.data_speaker import DataSpeaker
from pandomq.sim.clients.publisher import Publishing
from pandomq.sim.ledger import BrokenPromise, SentMessage

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

QUERY: Final = "query"
KEPT: Final = "staged parts are kept for their time"


class Stager(DataSpeaker):
    transient = (*DataSpeaker.transient, data_form.PRECONDITION_FAILED)

    def __init__(self, scene: Scene, name: str, kind: QueueKind, wanted: int) -> None:
        super().__init__(scene, name)
        self._kind = kind
        self._wanted = wanted
        self._publishing = Publishing(self)
        self._batch = 0
        self._attempt = 0
        self._epoch = 0
        self._staged_ms: int | None = None
        """The time at which it requested the staging of the first part of this attempt that was answered."""
        self._parts: list[list[tuple[list[SentMessage], bytes]]] = []
        """The parts of the batch, by partition."""

    @property
    def content(self) -> bool:
        return self._batch >= self._wanted

    def end_wish(self) -> None:
        self._wanted = self._batch + 2

    def hear_refusal(self, asked: str, fields: Fields) -> None:
        if fields["error"] != data_form.PRECONDITION_FAILED or self._epoch != self.scene.ledger.epoch:
            return
        # This time is by the slowest clock.
        kept_ms = self.scene.machines[0].settings.tables.staged_left_alone_ms * 9 // 10
        if self._staged_ms is None or self.scene.agenda.now_ms <= self._staged_ms + kept_ms:
            raise BrokenPromise(KEPT, f"{self.name} asked to {asked} batch {self._batch}, and received {fields}")

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        if asked == "stage" and self._staged_ms is None:
            self._staged_ms = self.asked_ms
        if asked == "stage" and not self.awaited:
            self._commit()
        elif asked == "commit":
            self._committed()

    # A batch.

    def begin(self) -> None:
        if not self._parts:
            self._parts = [
                [self._part() for _ in range(self.random.randint(1, 2))] for _ in range(self.random.randint(1, 2))
            ]
        self._attempt += 1
        self._epoch, self._staged_ms = self.scene.ledger.epoch, None
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
        # Without its queue the batch would be published to no queue.
        self.ask("stage", octets, queue=self._kind.name, **place)

    def _part(self) -> tuple[list[SentMessage], bytes]:
        return self._publishing.messages(self.random.randint(1, 3), self._kind)

    def _commit(self) -> None:
        attempts = [[partition, f"a-{self._attempt}", len(parts)] for partition, parts in enumerate(self._parts)]
        self.ask("commit", query=QUERY, batch=self._batch, attempts=attempts)

    def _committed(self) -> None:
        for parts in self._parts:
            for messages, _ in parts:
                for message in messages:
                    self.scene.observer.confirmed_at_root(message)
        self._parts = []
        self._batch += 1
        if not self.content:
            self.go_on(self.random.randint(0, 30))
