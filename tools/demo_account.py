"""What the demo's clients have seen: running counts for the display, and the account at the end.

The account is made of the clients' last words; every message has a number, so that none can hide.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

from tools.demo_clients import Copy, Progress, Published, Seen

RATE_WINDOW_S = 1.0
LATENCIES_KEPT = 5_000
COUNTED = ("published", "confirmed", "delivered", "acked")


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

    def lines(self) -> list[tuple[str, str]]:
        return [
            ("sent", f"{self.sent:,}"),
            ("confirmed", f"{self.confirmed:,}"),
            ("lost", f"{self.lost:,}"),
            ("published again, since no confirm came", f"{self.again:,}"),
            ("delivered again", f"{self.redelivered:,}"),
            ("of these without the mark `redelivered`", f"{self.unmarked:,}"),
            ("longest pause between confirms", f"{self.counters.longest_pause_s:.2f} s"),
        ]

    def balances(self) -> bool:
        return self.sent > 0 and self.confirmed == self.sent and self.lost == 0 and self.unmarked == 0
