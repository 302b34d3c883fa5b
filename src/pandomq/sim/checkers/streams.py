"""A stream has each of its messages at one offset, the same for all readers, on all brokers and for ever (D3, D6, D10).

It follows that uncommitted messages are never read: they could have another offset afterwards, or none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger
from pandomq.sim.machine import Machine

PROMISE: Final = "a stream has one content"
STAGED: Final = "what is staged waits for its commit"


class StreamsKept(Checker):
    def __init__(self, ledger: WorldLedger) -> None:
        super().__init__(ledger)
        self._content: dict[str, dict[int, SentMessage]] = defaultdict(dict)
        """The messages that were read from each stream, by offset."""
        self._places: dict[tuple[str, SentMessage], int] = {}

    def read(self, stream: str, offset: int, message: SentMessage) -> None:
        """A client read the message."""
        if message.discarded:
            raise BrokenPromise(STAGED, f"{message} was staged and never named, and is at offset {offset} of {stream}")
        known = self._content[stream].setdefault(offset, message)
        if known is not message:
            raise BrokenPromise(PROMISE, f"{message} is at offset {offset} of {stream}, where {known} was")
        first = self._places.setdefault((stream, message), offset)
        if first != offset:
            raise BrokenPromise(PROMISE, f"{message} is at offset {offset} of {stream}, and was at {first}")

    @staticmethod
    def end_of(stream: str, machines: Sequence[Machine]) -> int:
        """Returns the end of the stream at the root."""
        for machine in machines:
            if machine.serving and machine.node is not None:
                found = machine.node.broker.streams.find("/", stream)
                return 0 if found is None else int(found.committed_end)
        return 1 << 60

    @staticmethod
    def first_of(stream: str, machines: Sequence[Machine]) -> int:
        """The oldest offset that the root still has, or the end of the stream; 0 while no broker serves."""
        for machine in machines:
            if machine.serving and machine.node is not None:
                found = machine.node.broker.streams.find("/", stream)
                return 0 if found is None else int(found.first_offset)
        return 0

    def finished(self, machine: Machine) -> None:
        for stream, content in self._content.items():
            if self.ledger.kinds[stream].keeps and sorted(content) != list(range(len(content))):
                raise BrokenPromise(PROMISE, f"{stream} has gaps among its {len(content)} offsets")
            left = self.ledger.left.get(stream, [])
            if self.ledger.kinds[stream].keeps and len(left) < len(content):
                raise BrokenPromise(PROMISE, f"of {stream} {len(content)} offsets were read, and {len(left)} are left")
            last: dict[int, int] = {}
            for offset in sorted(content):
                message = content[offset]
                if message.number <= last.get(message.channel, 0):
                    raise BrokenPromise("order", f"{message} is in {stream} after number {last[message.channel]}")
                last[message.channel] = message.number
