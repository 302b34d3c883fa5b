"""What a planted bug is, and how it is put in and taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec


class Patch:
    """Attributes of classes and modules that are others for a while."""

    def __init__(self) -> None:
        self._old: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        self._old.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self._old:
            owner, name, value = self._old.pop()
            setattr(owner, name, value)


class Mutation(msgspec.Struct, frozen=True):
    name: str
    about: str
    plant: Callable[[Patch], None]
    nodes: int = 1
    """Of the worlds in which it shows."""
    log: bool = False
    """It shows in worlds of logs."""
    fronts: bool = False
    """It shows where any broker serves: others are passed over."""
    acks: bool = False
    """The same for worlds that are about acks of clients of other brokers than the root."""
    streams: bool = False
    """The same for worlds with streams."""
    churn: bool = False
    """The same for worlds that are about changes of the configuration."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        patch = Patch()
        self.plant(patch)
        try:
            yield
        finally:
            patch.undo()
