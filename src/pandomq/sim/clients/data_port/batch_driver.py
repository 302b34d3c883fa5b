"""Drives the batches of a query, as one of several drivers without knowledge of each other: stages parts, and commits
them.

It asks for the number of the last batch, and makes the next batch, or makes the last batch again, which must change
nothing. After it has lost its connection it repeats the same commit, or begins anew. Some attempts are staged and never
named: the broker drops them when they have been left alone for long enough.

Sometimes it works ahead: it stages the batch after the next one, and polls the number of the last batch until the batch
between is decided, even if that is not completely published. Then it commits at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq import data_form
from pandomq.sim.clients.data_port.data_speaker import DataSpeaker
from pandomq.sim.clients.publisher import MessageOptions, Publishing
from pandomq.sim.ledger import BrokenPromise, SentMessage

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.checkers.batches import BatchesWhole, StagedQuery
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

LOST_CHANCE: Final = 0.25
AGAIN_CHANCE: Final = 0.2
SLOW_CHANCE: Final = 0.1
AHEAD_CHANCE: Final = 0.4
POLLS_MAX: Final = 40
"""The number of polls for the decision about the previous batch; after that it gives up its own batch."""
POLL_MS: Final = 1
KEPT: Final = "staged parts are kept for their time"
LOST: Final = -1
"""The number that stands for the partition of an attempt that no commit names."""
AHEAD: Final = 1_000
"""How far ahead of the others the batch of such an attempt is: it is never reached, so only time drops the attempt, no
commit."""


class PartitionPart(NamedTuple):
    partition: int
    number: int
    octets: bytes


class BatchDriver(DataSpeaker):
    transient = (*DataSpeaker.transient, data_form.PRECONDITION_FAILED)

    def __init__(
        self, scene: Scene, name: str, kind: QueueKind, query: StagedQuery, checker: BatchesWhole, left_alone_ms: int
    ) -> None:
        super().__init__(scene, name)
        self._kind = kind
        self._query = query
        self._checker = checker
        self._kept_ms = left_alone_ms * 9 // 10
        """The time for which staged parts certainly exist, by any clock."""
        self._wanted = self.random.randint(3, 8)
        self._publishing = Publishing(self)
        self._epoch = 0
        self._count = 0
        """The number of its attempts."""
        self._batch = -1
        self._known = -1
        """The last decided batch according to its last request."""
        self._parts: deque[PartitionPart] = deque()
        """The parts that it has yet to stage."""
        self._sizes: dict[int, int] = {}
        """The number of parts of each partition."""
        self._renewed_ms: dict[int, int] = {}
        """By partition: when it requested the staging of the last part that was answered."""
        self._messages: list[SentMessage] = []
        self._begun = self._slow = self._hurries = False
        self._polls = 0
        """How often it may still poll for the previous batch; 0: it need not."""

    @property
    def content(self) -> bool:
        return not self._wanted

    def end_wish(self) -> None:
        self._wanted = 2
        # A large batch, part by part, would take longer than a world waits.
        self._hurries, self._slow = True, False
        if self._polls:
            self._polls, self._begun = 0, False
            self._parts.clear()
            self.leave_broker()

    # Requests.

    def begin(self) -> None:
        self._checker.begin_epoch()
        if self._epoch != self.scene.ledger.epoch:
            self._epoch, self._begun = self.scene.ledger.epoch, False
        self._known = self._query.decided
        if self._begun and not self._parts and self._polls:
            self._poll()
        elif self._begun and not self._parts and self.random.random() < 0.5:
            self._commit()
        elif self._begun and self._parts:
            self._stage()
        else:
            self._begun, self._polls = False, 0
            self.ask("last_batch", query=self._query.name)

    @property
    def _attempt(self) -> str:
        return f"{self.name}-{self._count}"

    def _begin_batch(self, batch: int) -> None:
        self._batch, self._begun = batch, True
        self._count += 1
        self._slow = self.random.random() < SLOW_CHANCE and not self._hurries
        self._sizes, self._renewed_ms = {}, {}
        self._messages = []
        if self.random.random() < LOST_CHANCE:
            _, octets = self._content(1)
            self._parts.append(PartitionPart(LOST, 0, octets))
        for partition, count in self._query.shape(batch):
            number = self._sizes.get(partition, 0)
            self._sizes[partition] = number + 1
            messages, octets = self._content(count)
            self._messages += messages
            self._parts.append(PartitionPart(partition, number, octets))
        self._stage()

    def _content(self, count: int) -> tuple[list[SentMessage], bytes]:
        return self._publishing.messages(count, self._kind, MessageOptions(persistent=True))

    def _stage(self) -> None:
        if not self._parts:
            self._all_staged()
        for part in list(self._parts)[: 1 if self._slow else None]:
            lost = part.partition == LOST
            self.ask(
                "stage",
                part.octets,
                query=self._query.name,
                batch=self._batch + (AHEAD if lost else 0),
                partition=0 if lost else part.partition,
                attempt=f"lost-{self._attempt}" if lost else self._attempt,
                part=part.number,
                # Without its queue the batch would be published to no queue.
                queue=self._kind.name,
            )

    def _all_staged(self) -> None:
        if self._polls:
            self._poll()
        else:
            self._commit()

    def _poll(self) -> None:
        self.ask("last_batch", query=self._query.name)

    def _commit(self) -> None:
        self.scene.on_tempted()
        self._checker.names(self._query, self._batch, self._messages)
        rows: list[list[object]] = [[partition, self._attempt, parts] for partition, parts in self._sizes.items()]
        if not rows and self.random.random() < 0.5:
            # A partition without any part may be named, too.
            rows = [[0, self._attempt, 0]]
        self.ask("commit", query=self._query.name, batch=self._batch, attempts=rows)

    # Answers.

    def hear_refusal(self, asked: str, fields: Fields) -> None:
        missing = fields["error"] == data_form.PRECONDITION_FAILED
        if asked == "commit":
            missing = missing or fields["error"] == data_form.NOT_FOUND
        if not missing:
            return
        kept_until_ms = min(self._renewed_ms.values(), default=0) + self._kept_ms
        if self.scene.agenda.now_ms <= kept_until_ms and self._epoch == self.scene.ledger.epoch:
            raise BrokenPromise(
                KEPT, f"{self.name} staged batch {self._batch}, asked to {asked}, and received {fields}"
            )
        self._begun, self._polls = False, 0
        self._parts.clear()

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        if self._epoch != self.scene.ledger.epoch:
            self._parts.clear()
            self._polls = 0
            self.go_on(0)
            return
        match asked:
            case "last_batch":
                self._hear_last(fields["batch"])
            case "stage":
                self._staged(decided=fields["decided"])
            case "commit":
                self._committed()
            case _:
                raise AssertionError(f"there was no request to {asked}")

    def _hear_last(self, batch: int) -> None:
        self._checker.last_batch(self._query, batch, self._known)
        self._known = self._query.decided
        if self._polls:
            self._hear_polled(batch)
        elif batch >= 0 and self.random.random() < AGAIN_CHANCE:
            self._begin_batch(batch)
        elif self.random.random() < AHEAD_CHANCE and not self._hurries:
            self._polls = POLLS_MAX
            self._begin_batch(batch + 2)
        else:
            self._begin_batch(batch + 1)

    def _hear_polled(self, batch: int) -> None:
        if batch >= self._batch - 1:
            self._polls = 0
            self._commit()
            return
        self._polls -= 1
        self._begun = self._polls > 0
        self.go_on(POLL_MS)

    def _staged(self, *, decided: bool) -> None:
        part = self._parts.popleft()
        if part.partition == LOST:
            self._checker.staged(self._query, self._batch + AHEAD, self._known, decided=decided)
        else:
            self._renewed_ms[part.partition] = self.asked_ms
            self._checker.staged(self._query, self._batch, self._known, decided=decided)
        if self._slow and self._parts:
            self.go_on(self._kept_ms * 6 // 10)
        elif not self._parts:
            self._all_staged()

    def _committed(self) -> None:
        self._checker.batch_committed(self._query, self._batch, self.machine)
        self._begun = False
        self._wanted = max(0, self._wanted - 1)
        if self._wanted:
            self.go_on(self.random.randint(0, 30))
