"""The definition of a planted bug, and how it is applied and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec


class Patch:
    """Attributes of classes and modules that are replaced for a while."""

    def __init__(self) -> None:
        self._old: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        self._old.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self._old:
            owner, name, value = self._old.pop()
            setattr(owner, name, value)


class PlantedBug(msgspec.Struct, frozen=True):
    name: str
    about: str
    plant: Callable[[Patch], None]
    nodes: int = 1
    """The number of brokers in worlds in which it shows."""
    log: bool = False
    """Whether it shows in worlds of logs."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        patch = Patch()
        self.plant(patch)
        try:
            yield
        finally:
            patch.undo()
