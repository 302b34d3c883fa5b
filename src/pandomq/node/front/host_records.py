"""The brokers that may have clients of their own, as the log names them.

A new root must wait for every broker that may have a serving lease from an earlier root (R16). It may never have been
linked with such a broker: a secondary needs a link with the root only. So a root writes a broker's name into the log
before it grants that broker the first lease. It removes the name when the broker has had no lease for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq.broker.log.commands import NoteHosts

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker

HOSTS_MAX: Final = 1_000
"""The number of brokers with clients of their own. Further brokers get no lease."""

_log: Final = logging.getLogger(__name__)


class HostRecords:
    """For use by the root."""

    __slots__ = ("_broker", "_committed", "_number", "_on_recorded", "_pending")

    def __init__(self, broker: Broker, on_recorded: Callable[[str], None]) -> None:
        """`on_recorded` is called with each name that was not recorded when it was looked up, and is now."""
        self._broker = broker
        self._on_recorded = on_recorded
        self._committed: set[str] = set()
        """Every later root knows these names."""
        self._pending: dict[str, int] = {}
        """Names that are being written into the log, with the number of the last attempt to do so."""
        self._number = 0

    @property
    def names(self) -> set[str]:
        return self._broker.state.hosts

    def took_over(self) -> None:
        """This broker is root now, and everything in its log is committed."""
        self._committed = set(self.names)

    def ensure_recorded(self, name: str) -> bool:
        """Returns whether every later root knows the name. If not, writes the name into the log."""
        if name in self._committed:
            return True
        if name not in self._pending:
            if len(self.names) >= HOSTS_MAX:
                _log.warning(
                    "broker %s serves no clients, because %d other brokers do, which is the limit: stop one of them",
                    name,
                    HOSTS_MAX,
                )
                return False
            self._number += 1
            number = self._pending[name] = self._number
            self._broker.log(NoteHosts([name], []))
            self._broker.held.call_when_committed(lambda: self._record(name, number))
        return False

    def _record(self, name: str, number: int) -> None:
        if self._pending.get(name) == number:
            del self._pending[name]
            self._committed.add(name)
            self._on_recorded(name)

    def forget(self, name: str) -> None:
        """The broker has no lease, and gets none before it is recorded again."""
        self._pending.pop(name, None)
        self._committed.discard(name)
        if name in self.names:
            self._broker.log(NoteHosts([], [name]))
