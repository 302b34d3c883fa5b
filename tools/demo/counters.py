"""Running counts of all clients together, for the display and for the report's lines."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.demo.words import Progress

RATE_WINDOW_S = 1.0
LATENCIES_KEPT = 5_000
COUNTED = ("published", "confirmed", "delivered", "acked", "heard", "read")


@dataclass
class Counters:
    """The sum of all clients' reports, and its rates."""

    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT))
    fresh_ms: list[float] = field(default_factory=list)
    """Latencies that have not been read yet."""
    history: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)
    longest_pause_s: float = 0.0

    def add(self, progress: Progress) -> None:
        for name in COUNTED:
            self.totals[name] += getattr(progress, name)
        self.latencies_ms.extend(progress.latencies_ms)
        self.fresh_ms.extend(progress.latencies_ms)
        self.longest_pause_s = max(self.longest_pause_s, progress.pause_s)

    def take_fresh(self) -> list[float]:
        taken, self.fresh_ms = self.fresh_ms, []
        return taken

    def rates(self) -> dict[str, float]:
        """Rates per second, over the last moments."""
        now = time.monotonic()
        self.history.append((now, dict(self.totals)))
        while len(self.history) > 2 and now - self.history[0][0] > RATE_WINDOW_S:
            self.history.popleft()
        since, before = self.history[0]
        elapsed_s = max(now - since, 1e-9)
        return {name: (self.totals[name] - before[name]) / elapsed_s if now > since else 0.0 for name in COUNTED}

    def latency_ms(self, share: float) -> float:
        return quantile(sorted(self.latencies_ms), share)


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
