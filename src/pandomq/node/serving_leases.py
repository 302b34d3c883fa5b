"""Who may serve clients of its own, and until when; so that what was declared is in force wherever clients are (R16).

A broker that serves clients asks the root for a lease, again and again, and each time says how far it has applied the
log. The root answers who asks what was declared once every broker with a lease has applied it; of those that say
nothing the lease runs out. So a broker without a lease, which may be behind, serves nobody: it looks before each batch,
also after a pause.

Both ends measure by their own monotonic clock. The broker counts from when it asked, the root from when it heard, and
for a tenth longer: so the lease is over there before it is over here, as long as no clock is a tenth faster.

A root that has just been elected does not know who got leases from the last one. All brokers it knows of count as if
they had one, and had applied nothing, until they have said more, or the time of a lease is over. The last root itself
is none of them: its own lease has run out before another is elected, and its front serves under that one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from pandomq.cluster.serving import Grant, Report
from pandomq.kernel import NEVER_MS

EVERYTHING: Final = 2**63 - 1
"""An index above all others: nobody else serves."""
NOTHING: Final = -1
DRIFT_PERCENT: Final = 10
"""By how much one clock may be faster than another."""
ASKS_PER_LEASE: Final = 4
QUESTIONS_MAX: Final = 16
"""Whose answers are waited for; an older one would not last long anyway."""
GRANTS_MAX: Final = 8
"""For a broker that has not applied enough to use them; more are let pass."""


class ServingLeases:
    """The root's side. There are not more of them than brokers."""

    __slots__ = ("_leases", "length_ms")

    def __init__(self, lease_ms: int) -> None:
        self.length_ms = lease_ms + lease_ms * DRIFT_PERCENT // 100
        self._leases: dict[str, tuple[int, int]] = {}
        """By broker: what it has applied, and until when it may serve."""

    def begin(self, brokers: Iterable[str], now_ms: int) -> None:
        """This one is root now; these may have leases from the last."""
        self._leases = dict.fromkeys(brokers, (NOTHING, now_ms + self.length_ms))

    def heard(self, name: str, report: Report, settled_index: int, now_ms: int) -> Grant | None:
        """What to answer, at once. Clients may have been told of changes up to `settled_index`."""
        if not report.serves:
            self._leases.pop(name, None)
            return None
        self._leases[name] = (report.applied_index, now_ms + self.length_ms)
        return Grant(report.question, settled_index)

    def applied_everywhere(self, now_ms: int) -> int:
        """Up to this entry changes are in force wherever clients are."""
        over = [name for name, (_, ends_ms) in self._leases.items() if ends_ms <= now_ms]
        for name in over:
            del self._leases[name]
        return min((applied_index for applied_index, _ in self._leases.values()), default=EVERYTHING)

    def unheard(self) -> Iterator[str]:
        """Who may have a lease from the last root, and has not said yet how far it is."""
        return (name for name, (applied_index, _) in self._leases.items() if applied_index == NOTHING)

    @property
    def next_ms(self) -> int:
        """When the first of them runs out, unless it is heard from; NEVER_MS if there is none."""
        return min((ends_ms for _, ends_ms in self._leases.values()), default=NEVER_MS)

    def view(self) -> dict[str, tuple[int, int]]:
        """By broker: what it has applied, and until when it may serve."""
        return dict(self._leases)


class FrontLease:
    """The side of who serves."""

    __slots__ = ("_asked", "_asked_ms", "_ends_ms", "_grants", "_lease_ms", "_question", "_root")

    def __init__(self, lease_ms: int) -> None:
        self._lease_ms = lease_ms
        self._root = ""
        self._question = 0
        self._asked: deque[tuple[int, int]] = deque(maxlen=QUESTIONS_MAX)
        """Question and when; in order."""
        self._asked_ms = NOTHING
        self._grants: deque[tuple[int, int]] = deque()
        """What has to be applied first, and when it ends."""
        self._ends_ms = NOTHING

    def ask_at(self, root: str) -> int:
        """When to ask this root next, if nothing new is applied meanwhile."""
        if root != self._root or self._asked_ms == NOTHING:
            return 0
        return self._asked_ms + self._lease_ms // ASKS_PER_LEASE

    def ask(self, root: str, applied_index: int, now_ms: int) -> Report:
        """To be sent to the root. Whatever another one granted ends with the first question: the new one counts on
        that."""
        if root != self._root:
            self.give_up()
            self._root = root
        self._question += 1
        self._asked.append((self._question, now_ms))
        self._asked_ms = now_ms
        return Report(self._question, applied_index)

    def granted(self, root: str, grant: Grant) -> None:
        """By this broker, which need not be the one that was asked last."""
        if root != self._root:
            return
        while self._asked and self._asked[0][0] <= grant.question:
            question, asked_ms = self._asked.popleft()
            if question == grant.question and len(self._grants) < GRANTS_MAX:
                self._grants.append((grant.after_index, asked_ms + self._lease_ms))

    def holds(self, applied_index: int, now_ms: int) -> bool:
        """To be asked before each batch. From when it is False nothing of clients may be handled."""
        while self._grants and self._grants[0][0] <= applied_index:
            self._ends_ms = max(self._ends_ms, self._grants.popleft()[1])
        while self._grants and self._grants[0][1] <= now_ms:
            self._grants.popleft()
        return now_ms < self._ends_ms

    def leave(self) -> Report:
        """To be sent to the root: nobody is served here from now on."""
        self.give_up()
        return Report(self._question, NOTHING, serves=False)

    def give_up(self) -> None:
        """There is no root, or another one."""
        self._root = ""
        self._asked.clear()
        self._grants.clear()
        self._asked_ms = self._ends_ms = NOTHING
