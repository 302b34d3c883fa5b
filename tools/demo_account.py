"""What the demo's clients have seen: running counts for the display, and the account at the end.

The account is made of the clients' last words; every message has a number, so that none can hide.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from tools.demo_clients import QUEUES, Copy, Heard, Progress, Published, Seen

RATE_WINDOW_S = 1.0
LATENCIES_KEPT = 5_000
COUNTED = ("published", "confirmed", "delivered", "acked", "heard")


@dataclass
class Counters:
    """What all clients together have reported, and how fast it moves."""

    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT))
    history: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)
    longest_pause_s: float = 0.0

    def add(self, progress: Progress) -> None:
        for name in COUNTED:
            self.totals[name] += getattr(progress, name)
        self.latencies_ms.extend(progress.latencies_ms)
        self.longest_pause_s = max(self.longest_pause_s, progress.pause_s)

    def rates(self) -> dict[str, float]:
        """Per second, over the last moments."""
        now = time.monotonic()
        self.history.append((now, dict(self.totals)))
        while len(self.history) > 2 and now - self.history[0][0] > RATE_WINDOW_S:
            self.history.popleft()
        since, before = self.history[0]
        elapsed_s = max(now - since, 1e-9)
        return {name: (self.totals[name] - before[name]) / elapsed_s if now > since else 0.0 for name in COUNTED}

    def latency_ms(self, share: float) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


@dataclass
class Account:
    counters: Counters = field(default_factory=Counters)
    published: dict[int, Published] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    """Of each private queue. Subscribers want every third message: those of the first queue's key."""
    subscribed: int = 0
    """Private queues that there have been."""
    listened: int = 0
    """Processes whose subscribers have all reported."""

    @property
    def sent(self) -> int:
        return sum(report.count for report in self.published.values())

    @property
    def confirmed(self) -> int:
        return self.sent - sum(len(report.unconfirmed) for report in self.published.values())

    @property
    def lost(self) -> int:
        """Confirmed, but never delivered to anybody."""
        lost = 0
        for publisher, report in self.published.items():
            arrived = bytearray(report.count)
            for copies in self._of(publisher):
                for number, times in enumerate(copies[: report.count]):
                    arrived[number] |= bool(times)
            doubtful = set(report.unconfirmed)
            lost += sum(not came and number not in doubtful for number, came in enumerate(arrived))
        return lost

    def _of(self, publisher: int) -> list[bytes]:
        return [times for seen in self.seen for copy, times in seen.times.items() if copy[0] == publisher]

    @property
    def again(self) -> int:
        """Published once more by a publisher that could not know: no redelivery, and no broker's fault."""
        return sum(report.again for report in self.published.values())

    @property
    def redelivered(self) -> int:
        """Deliveries of what had been delivered before."""
        return sum(max(0, times - 1) for numbers in self._together("times").values() for times in numbers)

    @property
    def unmarked(self) -> int:
        """Redeliveries that did not say so."""
        return sum(max(0, times - 1) for numbers in self._together("unmarked").values() for times in numbers)

    def _together(self, what: str) -> dict[Copy, list[int]]:
        """The same copy of a message may have come to several consumers."""
        together: dict[Copy, list[int]] = {}
        for seen in self.seen:
            for copy, numbers in getattr(seen, what).items():
                sums = together.setdefault(copy, [])
                sums.extend([0] * (len(numbers) - len(sums)))
                for number, times in enumerate(numbers):
                    sums[number] += times
        return together

    @property
    def once(self) -> int:
        """Messages that came to a subscriber exactly once."""
        return sum(times.count(1) for heard in self.heard for times in heard.times.values())

    @property
    def doubled(self) -> int:
        """Copies too many at a subscriber."""
        return sum(max(0, times - 1) for heard in self.heard for numbers in heard.times.values() for times in numbers)

    @property
    def unheard(self) -> int:
        """Confirmed, but not heard by a subscriber that was there from before it was published until the end."""
        return sum(self._unheard_by(heard) for heard in self.heard if heard.whole)

    def _unheard_by(self, heard: Heard) -> int:
        unheard = 0
        for publisher, began in heard.first.items():
            report = self.published[publisher]
            copies = [times for copy, times in heard.times.items() if copy[0] == publisher]
            wanted = set(range(0, report.count, len(QUEUES))) - set(report.unconfirmed)
            came = {number for times in copies for number, often in enumerate(times) if often}
            unheard += sum(number >= began for number in wanted - came)
        return unheard

    def lines(self) -> list[tuple[str, str]]:
        return [
            ("sent", f"{self.sent:,}"),
            ("confirmed", f"{self.confirmed:,}"),
            ("lost", f"{self.lost:,}"),
            ("published again, since no confirm came", f"{self.again:,}"),
            ("delivered again", f"{self.redelivered:,}"),
            ("of these without the mark `redelivered`", f"{self.unmarked:,}"),
            ("heard by subscribers, once each", f"{self.once:,}"),
            ("heard twice", f"{self.doubled:,}"),
            ("not heard by one whose broker lived", f"{self.unheard:,}"),
            ("longest pause between confirms", f"{self.counters.longest_pause_s:.2f} s"),
        ]

    def balances(self) -> bool:
        """Nothing lost, nothing twice without saying so."""
        wrong = self.lost or self.unmarked or self.doubled or self.unheard
        return self.sent > 0 and self.confirmed == self.sent and not wrong
