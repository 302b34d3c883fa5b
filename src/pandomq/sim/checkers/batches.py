"""Staged batches of queries, each driven by several clients (D11, docs/deduplication.md#staged-batches).

Each attempt at a batch has its own messages, so the checker can tell which attempt counted. Of each batch the queue has
all messages of one attempt that some commit named, in order, once, behind those of the query's earlier batches; and no
message of any other attempt. A batch whose commit was answered is in the queue by then, and stays. The number of the
last decided batch never decreases.

A broker that is promoted by force may have lost batches, but never parts of one.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine

PROMISE: Final = "a batch is published once or not at all"
DECIDED: Final = "a decided batch stays decided"
EMPTY_CHANCE: Final = 0.25


class PartitionCount(NamedTuple):
    partition: int
    messages: int


class StagedQuery:
    """The batches of one query, as reported by all clients that drive it."""

    def __init__(self, seed: str, name: str) -> None:
        self._seed = seed
        self.name = name
        self.named = -1
        """The last batch for which a commit was requested."""
        self.answered: set[int] = set()
        """The batches for which a commit was answered. An empty batch is answered even if its predecessor is not
        published."""
        self.decided = -1
        """The last batch that a broker reported as decided."""
        self.epoch = 0
        """The epoch in which this is known."""
        self.attempts: dict[int, list[list[SentMessage]]] = {}
        """By batch, the attempts that commits named."""

    def shape(self, batch: int) -> list[PartitionCount]:
        """Returns the parts that every attempt at this batch has; none if the batch is empty."""
        random = Random(f"{self._seed} {self.name} {batch}")
        if random.random() < EMPTY_CHANCE:
            return []
        partitions = random.randint(1, 2)
        return [
            PartitionCount(partition, random.choice((1, 1, 2)))
            for partition in range(partitions)
            for _ in range(random.choice((1, 3, 9)))
        ]

    def size(self, batch: int) -> int:
        return sum(part.messages for part in self.shape(batch))

    def begin_epoch(self, epoch: int) -> None:
        if self.epoch != epoch:
            self.epoch = epoch
            self.answered, self.decided = set(), -1


class BatchesWhole(Checker):
    def __init__(self, ledger: WorldLedger, queue: str, queries: list[StagedQuery]) -> None:
        super().__init__(ledger)
        self._queue = queue
        self.queries = queries
        self._drained_again = False

    def opened(self, machine: Machine) -> None:
        """A broker that finds its disk damaged while the queues are emptied restarts, and may deliver the same messages
        again."""
        self._drained_again |= self._queue in self.ledger.left

    def begin_epoch(self) -> None:
        for query in self.queries:
            query.begin_epoch(self.ledger.epoch)

    def last_batch(self, query: StagedQuery, batch: int, known: int) -> None:
        """A broker reports this batch as the last one; `known` is the last decided batch that was known at the
        request."""
        if not known <= batch <= query.named:
            raise BrokenPromise(
                DECIDED, f"the last batch of {query.name} is {batch}; {known} is decided, {query.named} was named last"
            )
        query.decided = max(query.decided, batch)

    def staged(self, query: StagedQuery, batch: int, known: int, *, decided: bool) -> None:
        """A part was staged; `decided`: the broker reports the batch as decided. `known` is as above."""
        if decided and batch > query.named:
            raise BrokenPromise(DECIDED, f"nobody named batch {batch} of {query.name}, and it is decided")
        if not decided and batch <= known:
            raise BrokenPromise(DECIDED, f"batch {batch} of {query.name} is decided, and parts of it are taken again")
        if decided:
            query.decided = max(query.decided, batch)

    def names(self, query: StagedQuery, batch: int, messages: list[SentMessage]) -> None:
        """A commit is requested. It does not count if the batch is already known to be decided."""
        query.named = max(query.named, batch)
        attempts = query.attempts.setdefault(batch, [])
        if batch > query.decided and messages not in attempts:
            attempts.append(messages)

    def batch_committed(self, query: StagedQuery, batch: int, root: Machine | None) -> None:
        """A commit was answered: the whole batch is in the queue."""
        query.answered.add(batch)
        query.decided = max(query.decided, batch)
        if root is None or root.node is None or self.ledger.epoch:
            return
        queue = root.node.broker.state.vhosts["/"].queues.get(self._queue)
        there = 0 if queue is None else queue.kernel.ready_count
        wanted = sum(one.size(number) for one in self.queries for number in one.answered)
        if there < wanted:
            text = f"batch {batch} of {query.name} is said to be published; {there} messages are there, not {wanted}"
            raise BrokenPromise(PROMISE, text)

    def finished(self, machine: Machine) -> None:
        left = self.ledger.left.get(self._queue, [])
        if self._drained_again:
            left = list(dict.fromkeys(left))
        named: set[SentMessage] = set()
        for query in self.queries:
            own = {
                message: batch
                for batch, attempts in query.attempts.items()
                for messages in attempts
                for message in messages
            }
            named.update(own)
            self._check(query, [message for message in left if message in own], own)
        for message in left:
            if message not in named:
                raise BrokenPromise(PROMISE, f"{message} was staged, does not count, and is in {self._queue}")

    def _check(self, query: StagedQuery, found: list[SentMessage], own: dict[SentMessage, int]) -> None:
        at, last = 0, -1
        there: set[int] = set()
        while at < len(found):
            batch = own[found[at]]
            whole = next((one for one in query.attempts[batch] if one == found[at : at + len(one)] and one), None)
            if whole is None or batch <= last:
                text = f"batch {batch} of {query.name} begins with {found[at]}, behind batch {last}, and is not whole"
                raise BrokenPromise(PROMISE, text)
            there.add(batch)
            at, last = at + len(whole), batch
        missing = [batch for batch in range(query.decided + 1) if query.size(batch) and batch not in there]
        if missing and not self.ledger.epoch:
            raise BrokenPromise(PROMISE, f"batches {missing} of {query.name} were decided, and are not there")
