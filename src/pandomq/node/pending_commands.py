"""Commands that administrators have submitted, until the broker has handled them and their senders have the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.broker.containment import internal_failure

if TYPE_CHECKING:
    from pandomq.broker.administration.administration import OnDone
    from pandomq.broker.broker import Broker
    from pandomq.broker.log.commands import AdministrativeCommand
    from pandomq.errors import ConnectionFault


class PendingCommands:
    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: list[tuple[AdministrativeCommand, OnDone]] = []

    def __bool__(self) -> bool:
        return bool(self._asked)

    def add(self, command: AdministrativeCommand, on_done: OnDone) -> None:
        self._asked.append((command, on_done))

    def submit(self, broker: Broker, now_ms: int) -> None:
        """Raises StateInDoubt."""
        if self._asked:
            asked, self._asked = self._asked, []
            for command, on_done in asked:
                changes = broker.changes
                try:
                    broker.administration.submit(command, on_done, now_ms)
                except Exception as error:
                    on_done(internal_failure())
                    broker.containment.note(error, changes)

    def refuse(self, fault: ConnectionFault | None) -> None:
        for _, on_done in self._asked:
            on_done(fault)
        self._asked.clear()
