"""What administrators have asked for, until the broker is told, or they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.broker.administration import Administration, OnDone
    from pandomq.broker.commands import AdministrativeCommand
    from pandomq.errors import ConnectionFault


class Administered:
    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: list[tuple[AdministrativeCommand, OnDone]] = []

    def __bool__(self) -> bool:
        return bool(self._asked)

    def add(self, command: AdministrativeCommand, on_done: OnDone) -> None:
        self._asked.append((command, on_done))

    def submit(self, administration: Administration, now_ms: int) -> None:
        if self._asked:
            asked, self._asked = self._asked, []
            for command, on_done in asked:
                administration.submit(command, on_done, now_ms)

    def refuse(self, fault: ConnectionFault | None) -> None:
        for _, on_done in self._asked:
            on_done(fault)
        self._asked.clear()
