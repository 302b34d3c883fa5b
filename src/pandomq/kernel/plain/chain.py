"""A list of consumers that any of them can leave in one step: the links are in the consumers themselves.

A consumer is in one chain at most, and knows which (`Consumer.chain`).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.kernel.plain.consumer import Consumer


class Chain:
    """Consumers in the order in which they came."""

    __slots__ = ("first", "last")

    def __init__(self) -> None:
        self.first: Consumer | None = None
        self.last: Consumer | None = None

    def __iter__(self) -> Iterator["Consumer"]:
        consumer = self.first
        while consumer is not None:
            yield consumer
            consumer = consumer.after

    def append(self, consumer: "Consumer") -> None:
        assert consumer.chain is None
        consumer.chain = self
        consumer.before = self.last
        consumer.after = None
        if self.last is None:
            self.first = consumer
        else:
            self.last.after = consumer
        self.last = consumer

    def remove(self, consumer: "Consumer") -> None:
        assert consumer.chain is self
        if consumer.before is None:
            self.first = consumer.after
        else:
            consumer.before.after = consumer.after
        if consumer.after is None:
            self.last = consumer.before
        else:
            consumer.after.before = consumer.before
        consumer.chain = consumer.before = consumer.after = None

    def rotate(self) -> None:
        """The first becomes the last."""
        first = self.first
        if first is not None and first is not self.last:
            self.remove(first)
            self.append(first)

    def check(self) -> None:
        before = None
        for consumer in self:
            assert consumer.chain is self
            assert consumer.before is before
            before = consumer
        assert self.last is before
