"""The parts of a case, its requirements, and how it is run: clients at work throughout, and the account at the end."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .account import Account
from .cluster import Cluster
from .load import Load, at_work

_numbers = itertools.count(1)


@dataclass
class Scene:
    cluster: Cluster
    load: Load
    chance: Random
    notes: list[str] = field(default_factory=list)
    """Remarks for a reader of the summary."""

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass(frozen=True)
class Outcome:
    case: str
    seconds: float
    summary: dict[str, Any]
    notes: list[str]


Case = Callable[[Scene], None]


def play(case: Case, cluster: Cluster, chance: Random, arguments: dict[str, Any] | None = None) -> Outcome:
    """The cluster has to be whole; it is again afterwards. Raises if a promise was broken or an expected event did not
    occur."""
    account = Account()
    begin = time.monotonic()
    prefix = f"{case.__name__}.{os.getpid():x}.{next(_numbers)}"
    scene = Scene(cluster, Load(cluster, account, prefix, arguments), chance)
    with at_work(scene.load):
        case(scene)
        scene.load.wait_for_progress()
    assert account.broken == [], f"{account.broken[:20]}\n{account.summary()}\n{cluster.story()}"
    cluster.check()
    return Outcome(case.__name__, round(time.monotonic() - begin, 2), account.summary(), scene.notes)
