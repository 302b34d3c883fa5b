"""The result of an audit: a statement on each guarantee, with its violations and with the reasons for everything that
was not judged."""

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
    """The known fields; the rest is empty."""

    promise: Promise
    text: str
    expected: str
    message: str = ""
    queue: str = ""
    offset: int | None = None
    """The sequence number in the queue."""
    index: int | None = None
    """The index of the log's entry."""
    brokers: str = ""


@dataclass
class Statement:
    promise: Promise
    judged: int = 0
    """Number of entries, messages or deliveries that were judged."""
    violations: list[Violation] = field(default_factory=list)
    count: int = 0
    """Number of violations, named or not."""
    reasons: dict[str, int] = field(default_factory=dict)
    """The reasons why something could not be judged, with the number of cases; 0 if that is unknown."""

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
    """A message that a forced promotion or a repair has cut off; this file keeps it."""

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
        """Unreadable files, and the like."""

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
