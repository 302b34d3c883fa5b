"""The story of a run: the roles of each broker over time, the events, and the rates of messages meanwhile.

Roles are those that `/api/cluster` reports over time; elections come from its own record. Times are seconds since the
story began.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pandomq.pipeline.plots import Point, TimelineLane, TimelineMark, TimelineSpan
from tools.demo.counters import COUNTED, Counters, quantile
from tools.demo.grove import Sight

BIN_S = 0.5
"""The interval over which rates and latencies are computed."""
ROLES = ("backup", "root", "secondary", "learner")
"""In the order of a plot's colours; a broker with none of these roles is not running."""


@dataclass
class Story:
    began: float = field(default_factory=time.monotonic)
    began_at: float = field(default_factory=time.time)
    marks: list[TimelineMark] = field(default_factory=list)
    rates: dict[str, list[Point]] = field(default_factory=lambda: {name: [] for name in COUNTED})
    middle_ms: list[Point] = field(default_factory=list)
    slow_ms: list[Point] = field(default_factory=list)
    confirmed: list[Point] = field(default_factory=list)
    """The total of messages up to each time."""
    archived: list[Point] = field(default_factory=list)
    """The rows in the lake."""
    killed_s: float | None = None
    _roles: dict[str, list[TimelineSpan]] = field(default_factory=dict)
    _elections: dict[int, TimelineMark] = field(default_factory=dict)
    _measured_s: float = 0.0
    _totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))

    @property
    def now_s(self) -> float:
        return time.monotonic() - self.began

    def tell(self, what: str, at_s: float | None = None) -> None:
        """Records an action or an observation; at the current time by default."""
        self.marks.append(TimelineMark(self.now_s if at_s is None else at_s, what))

    def look(self, sight: Sight) -> None:
        now_s = self.now_s
        for row in sight.rows:
            spans = self._roles.setdefault(row.name, [])
            if spans and spans[-1].kind == row.role:
                spans[-1] = TimelineSpan(spans[-1].begin, now_s, row.role)
            else:
                spans.append(TimelineSpan(spans[-1].end if spans else now_s, now_s, row.role))
        for election in sight.elections:
            term, at_s = election["term"], election["at_ms"] / 1000 - self.began_at
            # Each broker reports an election by itself; the earliest report counts.
            if term not in self._elections or at_s < self._elections[term].at:
                self._elections[term] = TimelineMark(max(0.0, at_s), f"{election['root']} is elected root, term {term}")

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
        """A batch arrives at once, so the line has steps."""
        now_s, before = self.now_s, self.archived[-1][1] if self.archived else 0.0
        if not self.archived or before != rows:
            self.archived += [(now_s, before), (now_s, float(rows))]

    def lanes(self) -> list[TimelineLane]:
        return [TimelineLane(name, spans) for name, spans in sorted(self._roles.items())]

    def events(self) -> list[TimelineMark]:
        """All events, in order."""
        return sorted([*self.marks, *self._elections.values()], key=lambda mark: mark.at)

    @property
    def takeover_s(self) -> float | None:
        """The time from the death of the root to the election of another one; None if there was none."""
        if self.killed_s is None:
            return None
        later = [mark.at for mark in self._elections.values() if mark.at >= self.killed_s]
        return min(later) - self.killed_s if later else None
