"""The story of a run: what each broker was and when, what happened, and how fast messages moved meanwhile.

Roles are what `/api/cluster` says from moment to moment, elections are its own record of them. Times are seconds since
the story began.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pandomq.pipeline.plots import Lane, Mark, Point, Span
from tools.demo.counters import COUNTED, Counters, quantile
from tools.demo.grove import Sight

BIN_S = 0.5
"""Rates and latencies are those of so long."""
ROLES = ("backup", "root", "secondary", "learner")
"""In the order of a plot's colours; whoever is none of these is not there."""


@dataclass
class Story:
    began: float = field(default_factory=time.monotonic)
    began_at: float = field(default_factory=time.time)
    marks: list[Mark] = field(default_factory=list)
    rates: dict[str, list[Point]] = field(default_factory=lambda: {name: [] for name in COUNTED})
    middle_ms: list[Point] = field(default_factory=list)
    slow_ms: list[Point] = field(default_factory=list)
    confirmed: list[Point] = field(default_factory=list)
    """Messages, all together until then."""
    archived: list[Point] = field(default_factory=list)
    """Rows in the lake."""
    killed_s: float | None = None
    _roles: dict[str, list[Span]] = field(default_factory=dict)
    _elections: dict[int, Mark] = field(default_factory=dict)
    _measured_s: float = 0.0
    _totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))

    @property
    def now_s(self) -> float:
        return time.monotonic() - self.began

    def tell(self, what: str, at_s: float | None = None) -> None:
        """Something was done, or seen to be so; just now if nothing else is said."""
        self.marks.append(Mark(self.now_s if at_s is None else at_s, what))

    def look(self, sight: Sight) -> None:
        now_s = self.now_s
        for row in sight.rows:
            spans = self._roles.setdefault(row.name, [])
            if spans and spans[-1].kind == row.role:
                spans[-1] = Span(spans[-1].begin, now_s, row.role)
            else:
                spans.append(Span(spans[-1].end if spans else now_s, now_s, row.role))
        for election in sight.elections:
            term, at_s = election["term"], election["at_ms"] / 1000 - self.began_at
            # Each broker hears of it by itself: the first that did counts.
            if term not in self._elections or at_s < self._elections[term].at:
                self._elections[term] = Mark(max(0.0, at_s), f"{election['root']} is elected root, term {term}")

    def measure(self, counters: Counters) -> None:
        now_s = self.now_s
        elapsed_s = now_s - self._measured_s
        if elapsed_s < BIN_S:
            return
        self.confirmed.append((now_s, float(counters.totals["confirmed"])))
        for name, points in self.rates.items():
            points.append((now_s, (counters.totals[name] - self._totals[name]) / elapsed_s))
        self._measured_s, self._totals = now_s, dict(counters.totals)
        latencies = sorted(counters.take_fresh())
        if latencies:
            self.middle_ms.append((now_s, quantile(latencies, 0.5)))
            self.slow_ms.append((now_s, quantile(latencies, 0.99)))

    def note_archived(self, rows: int) -> None:
        """A batch comes at once: the line has steps."""
        now_s, before = self.now_s, self.archived[-1][1] if self.archived else 0.0
        if not self.archived or before != rows:
            self.archived += [(now_s, before), (now_s, float(rows))]

    def lanes(self) -> list[Lane]:
        return [Lane(name, spans) for name, spans in sorted(self._roles.items())]

    def events(self) -> list[Mark]:
        """All that happened, in order."""
        return sorted([*self.marks, *self._elections.values()], key=lambda mark: mark.at)

    @property
    def takeover_s(self) -> float | None:
        """From the death of the root to the election of another; None if there was none."""
        if self.killed_s is None:
            return None
        later = [mark.at for mark in self._elections.values() if mark.at >= self.killed_s]
        return min(later) - self.killed_s if later else None
