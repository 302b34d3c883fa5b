"""Unsettled deliveries of a channel, by delivery tag."""

from typing import TYPE_CHECKING, NamedTuple

from pandomq.kernel.constants import NEVER_MS

if TYPE_CHECKING:
    from pandomq.kernel.plain.consumer import Consumer
    from pandomq.kernel.plain.queue import Queue
    from pandomq.kernel.plain.ring import RingEntry


class Unacked(NamedTuple):
    """One delivery that waits for its settlement; no consumer means basic.get."""

    queue: "Queue"
    entry: "RingEntry"
    consumer: "Consumer | None"
    delivered_ms: int


class Window:
    """`_low` only increases, and passes each tag once: settled tags are never walked over again."""

    __slots__ = ("_low", "_unacked", "last_tag")

    def __init__(self) -> None:
        self._unacked: dict[int, Unacked] = {}
        self._low = 1
        self.last_tag = 0

    def __len__(self) -> int:
        return len(self._unacked)

    def add(self, tag: int, unacked: Unacked) -> None:
        if not self._unacked:
            self._low = tag
        self._unacked[tag] = unacked

    def outstanding(self, tag: int, multiple: bool) -> list[int] | None:
        """The tags that a settlement concerns, or None if it names one that is not outstanding."""
        if multiple and tag == 0:
            return self._up_to(self.last_tag)
        if tag not in self._unacked:
            return None
        return self._up_to(tag) if multiple else [tag]

    def deliveries(self) -> list[Unacked]:
        return list(self._unacked.values())

    def queue_of(self, tag: int) -> "Queue":
        return self._unacked[tag].queue

    def place_of(self, tag: int) -> tuple[int, int]:
        unacked = self._unacked.get(tag)
        return (0, 0) if unacked is None else (unacked.entry.sequence, unacked.entry.term)

    def void(self, tag: int, nowhere: "Queue") -> Unacked:
        """Detaches a delivery from its queue: it stays outstanding and uses its consumer's credit. Returns the earlier
        state."""
        unacked = self._unacked[tag]
        self._unacked[tag] = unacked._replace(queue=nowhere)
        return unacked

    def pop(self, tag: int) -> Unacked:
        return self._unacked.pop(tag)

    @property
    def oldest_delivery_ms(self) -> int:
        if not self._unacked:
            return NEVER_MS
        self._raise_low()
        return self._unacked[self._low].delivered_ms

    def _up_to(self, tag: int) -> list[int]:
        if not self._unacked:
            return []
        self._raise_low()
        return [one for one in range(self._low, tag + 1) if one in self._unacked]

    def _raise_low(self) -> None:
        while self._low not in self._unacked:
            self._low += 1

    def check(self) -> None:
        tags = list(self._unacked)
        assert tags == sorted(tags)
        assert not tags or (self._low <= tags[0] and tags[-1] <= self.last_tag)
