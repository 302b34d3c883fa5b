"""What an audit has to say: a statement on each promise, with what breaks it and what could not be judged."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from pandomq.pipeline.audit.limits import NAMED_MAX


class Promise(enum.Enum):
    REPLICAS = "replicas agree"
    CONFIRMED = "nothing confirmed is lost"
    ACKED = "nothing acked comes back"
    ORDER = "order is kept"


class Verdict(enum.Enum):
    PROVEN = "proven"
    IN_PART = "proven in part"
    NOT_JUDGED = "not judged"
    REFUTED = "refuted"


@dataclass(frozen=True)
class Violation:
    """Whatever is known of it; the rest is empty."""

    promise: Promise
    text: str
    expected: str
    message: str = ""
    queue: str = ""
    offset: int | None = None
    """In the queue: its sequence number there."""
    index: int | None = None
    """Of the entry of the log."""
    brokers: str = ""


@dataclass
class Statement:
    promise: Promise
    judged: int = 0
    """So many entries, messages or deliveries."""
    violations: list[Violation] = field(default_factory=list)
    count: int = 0
    """Of violations, named or not."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Why something could not be judged, and how much of it; 0 where nobody can count it."""

    @property
    def verdict(self) -> Verdict:
        if self.count:
            return Verdict.REFUTED
        if not self.judged:
            return Verdict.NOT_JUDGED
        return Verdict.IN_PART if self.reasons else Verdict.PROVEN

    def breaks(self, violation: Violation, count: int = 1) -> None:
        self.count += count
        if len(self.violations) < NAMED_MAX:
            self.violations.append(violation)

    def left_out(self, reason: str, count: int = 0) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + count


@dataclass(frozen=True)
class CutOff:
    """A message that a forced promotion or a repair has cut off; it is kept in this file."""

    file: str
    broker: str
    index: int
    queue: str
    offset: int
    message: str


class Findings:
    def __init__(self) -> None:
        self.statements = {promise: Statement(promise) for promise in Promise}
        self.cut_off: list[CutOff] = []
        self.cut_off_count = 0
        self.notes: list[str] = []
        """Files that cannot be read, and the like."""

    def of(self, promise: Promise) -> Statement:
        return self.statements[promise]

    def cuts(self, message: CutOff) -> None:
        self.cut_off_count += 1
        if len(self.cut_off) < NAMED_MAX:
            self.cut_off.append(message)

    @property
    def refuted(self) -> bool:
        return any(statement.count for statement in self.statements.values())

    @property
    def proven(self) -> bool:
        return all(statement.verdict is Verdict.PROVEN for statement in self.statements.values())
