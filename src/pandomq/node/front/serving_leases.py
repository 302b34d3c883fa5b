"""Grants and holds the leases under which brokers serve clients of their own, so that a declare is in force at every
broker that has clients (R16).

A broker that serves clients requests a lease from the root, again and again, and each time reports how far it has
applied the log. The root answers a declare once every broker with a lease has applied it; the lease of a silent broker
expires. So a broker without a lease, which may be behind, serves no clients: it checks before each batch, also after a
pause.

Both ends measure by their own monotonic clock. The broker counts from its request, the root from the receipt, and for a
tenth longer: so the lease expires at the broker before it expires at the root, as long as no clock is a tenth faster.

A root that has just been elected does not know which brokers got leases from the last one. All brokers it knows count
as if they had one, and had applied nothing, until they have sent a report, or the time of a lease is over. The last
root itself is none of them: its own lease has expired before another is elected, and its front serves under that one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from pandomq.cluster.serving import Grant, Report
from pandomq.kernel import NEVER_MS

EVERYTHING: Final = 2**63 - 1
"""An index above all others: no other broker serves."""
NOTHING: Final = -1
DRIFT_PERCENT: Final = 10
"""The percentage by which one clock may be faster than another."""
ASKS_PER_LEASE: Final = 4
QUESTIONS_MAX: Final = 16
"""Requests whose answers are waited for; an older one would not last long anyway."""
SILENT_MS: Final = 60_000
"""A broker that has had no lease for so long is no longer one that a new root waits for."""
GRANTS_MAX: Final = 8
"""Grants for a broker that has not applied enough to use them; further ones are dropped."""


class ServingLeases:
    """The leases that the root has granted to brokers that serve clients: at most one per broker."""

    __slots__ = ("_expired", "_leases", "length_ms")

    def __init__(self, lease_ms: int) -> None:
        self.length_ms = lease_ms + lease_ms * DRIFT_PERCENT // 100
        self._leases: dict[str, tuple[int, int]] = {}
        """The index that each broker has applied, and the time until which it may serve."""
        self._expired: dict[str, int] = {}
        """Brokers whose lease has expired, and when; in order."""

    def begin(self, brokers: Iterable[str], now_ms: int) -> None:
        """To be called when this broker becomes root. These brokers may have leases from the previous root."""
        self._leases = dict.fromkeys(brokers, (NOTHING, now_ms + self.length_ms))
        self._expired.clear()

    def heard(self, name: str, report: Report, settled_index: int, now_ms: int) -> Grant | None:
        """Takes a broker's report and returns the answer to send at once. Clients may have been notified of changes up
        to `settled_index`."""
        if not report.serves:
            if self._leases.pop(name, None) is not None:
                self._expired[name] = now_ms
            return None
        self._expired.pop(name, None)
        self._leases[name] = (report.applied_index, now_ms + self.length_ms)
        return Grant(report.question, settled_index)

    def applied_everywhere(self, now_ms: int) -> int:
        """Changes up to this entry are in force wherever clients are."""
        over = [name for name, (_, ends_ms) in self._leases.items() if ends_ms <= now_ms]
        for name in over:
            self._expired[name] = self._leases.pop(name)[1]
        return min((applied_index for applied_index, _ in self._leases.values()), default=EVERYTHING)

    def take_silent(self, now_ms: int) -> list[str]:
        """Brokers that have had no lease for SILENT_MS; each is returned once."""
        if not self._expired:
            return []
        silent = [name for name, ended_ms in self._expired.items() if ended_ms + SILENT_MS <= now_ms]
        for name in silent:
            del self._expired[name]
        return silent

    def holders(self) -> Iterable[str]:
        """The brokers that may have a lease, from this root or from the last one."""
        return self._leases.keys()

    @property
    def next_ms(self) -> int:
        """The time at which the first lease expires, unless it is renewed; NEVER_MS if there is none."""
        return min((ends_ms for _, ends_ms in self._leases.values()), default=NEVER_MS)

    def view(self) -> dict[str, tuple[int, int]]:
        """The index that each broker has applied, and the time until which it may serve."""
        return dict(self._leases)


class FrontLease:
    """The lease of a broker that serves clients: its requests to the root, and the root's grants."""

    __slots__ = ("_asked", "_asked_ms", "_ends_ms", "_grants", "_lease_ms", "_question", "_root")

    def __init__(self, lease_ms: int) -> None:
        self._lease_ms = lease_ms
        self._root = ""
        self._question = 0
        self._asked: deque[tuple[int, int]] = deque(maxlen=QUESTIONS_MAX)
        """The number of each request, and its time; in order."""
        self._asked_ms = NOTHING
        self._grants: deque[tuple[int, int]] = deque()
        """The index that has to be applied first, and when the grant ends."""
        self._ends_ms = NOTHING

    def ask_at(self, root: str) -> int:
        """The time for the next request to this root, if nothing new is applied meanwhile."""
        if root != self._root or self._asked_ms == NOTHING:
            return 0
        return self._asked_ms + self._lease_ms // ASKS_PER_LEASE

    def ask(self, root: str, applied_index: int, now_ms: int, *, attached: bool = True) -> Report:
        """The request to the root. Grants of another root end with the first request: the new one relies on that."""
        if root != self._root:
            self.give_up()
            self._root = root
        self._question += 1
        self._asked.append((self._question, now_ms))
        self._asked_ms = now_ms
        return Report(self._question, applied_index, attached=attached)

    def granted(self, root: str, grant: Grant) -> None:
        """Takes a grant from this root. It may answer an earlier request than the last one."""
        if root != self._root:
            return
        while self._asked and self._asked[0][0] <= grant.question:
            question, asked_ms = self._asked.popleft()
            if question == grant.question and len(self._grants) < GRANTS_MAX:
                self._grants.append((grant.after_index, asked_ms + self._lease_ms))

    def holds(self, applied_index: int, now_ms: int) -> bool:
        """Whether this broker may serve clients. To be checked before each batch: after False no input of a client may
        be handled."""
        while self._grants and self._grants[0][0] <= applied_index:
            self._ends_ms = max(self._ends_ms, self._grants.popleft()[1])
        while self._grants and self._grants[0][1] <= now_ms:
            self._grants.popleft()
        return now_ms < self._ends_ms

    def leave(self) -> Report:
        """The report to the root: no client is served here from now on."""
        self.give_up()
        return Report(self._question, NOTHING, serves=False)

    def give_up(self) -> None:
        """To be called when there is no root, or another one: the grants end."""
        self._root = ""
        self._asked.clear()
        self._grants.clear()
        self._asked_ms = self._ends_ms = NOTHING
