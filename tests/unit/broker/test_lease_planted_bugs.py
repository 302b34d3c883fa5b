"""The books of `test_lease_ledger` would show it: bugs planted in the code are found, each within a few programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from pandomq import kernel
from pandomq.broker.broker import Broker
from pandomq.broker.leases import leases as asking
from pandomq.broker.leases.expiry import LeaseExpiry
from pandomq.broker.leases.lease import Lease, LeaseRun
from pandomq.broker.leases.moving import Mover
from pandomq.broker.leases.table import LeaseTable
from pandomq.broker.log.commands import (
    LeaseMessages,
    MessageCommand,
    ReleaseLeased,
    ReturnLeased,
    encode_command,
)
from tests.unit.broker.lease_scene import TIMEOUT_MS
from tests.unit.broker.test_lease_ledger import LESSEES, Books

PROGRAMS_MAX = 20
STEPS = 60

Plant = Callable[[pytest.MonkeyPatch], None]


def steps(random: Random) -> list[Any]:
    """Of a life with takeovers, and one with restarts from snapshots in its second half."""
    kinds = ("publish", "lease", "release", "end", "take", "wait", "takeover", "snapshot")
    found: list[Any] = []
    for place in range(STEPS):
        weights = (6, 6, 6, 2, 2, 1, 0 if place > STEPS // 2 else 2, 2 if place > STEPS // 2 else 0)
        kind = random.choices(kinds, weights)[0]
        name, count = random.choice(LESSEES), random.randint(1, 8)
        arguments: dict[str, tuple[Any, ...]] = {
            "publish": (count,),
            "take": (count,),
            "lease": (name, count),
            "release": (name, count),
            "end": (name,),
            "wait": (random.choice((10, TIMEOUT_MS // 2, 2 * TIMEOUT_MS)),),
        }
        found.append((kind, *arguments.get(kind, ())))
    return found


def unlogged(kind: type[MessageCommand]) -> Plant:
    """Commands of this kind have their effect here, and the log does not know."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        def log(self: Broker, command: MessageCommand) -> None:
            self.change(command)
            self._unsealed = True
            if not isinstance(command, kind):
                self.engine.log_command(encode_command(command))

        patch.setattr(Broker, "log", log)

    return plant


def runs_stay(patch: pytest.MonkeyPatch) -> None:
    """Released messages keep their places in the queue."""

    def leave(self: Lease, offset: int) -> None:
        self.first_offset = offset

    patch.setattr(Lease, "leave", leave)


def never_redelivered(patch: pytest.MonkeyPatch) -> None:
    def reinstate(engine: kernel.Engine, queue: kernel.Queue, command: ReturnLeased) -> None:
        for sequence, deadline_ms, delivery_count, *content in command.messages:
            queue.reinstate(kernel.Message(*content), sequence, engine.term, deadline_ms, delivery_count, False)

    patch.setattr(asking, "reinstate", reinstate)


def at_the_end_of_the_queue(patch: pytest.MonkeyPatch) -> None:
    def reinstate(engine: kernel.Engine, queue: kernel.Queue, command: ReturnLeased) -> None:
        for _, deadline_ms, delivery_count, *content in command.messages:
            place = queue.next_sequence
            queue.reinstate(kernel.Message(*content), place, engine.term, deadline_ms, delivery_count, True)

    patch.setattr(asking, "reinstate", reinstate)


def stays_in_the_queue(patch: pytest.MonkeyPatch) -> None:
    """Leased, and not taken."""
    move = Mover.move

    def copied(
        self: Mover, source: kernel.Queue, stream: kernel.Queue, messages_max: int, bytes_max: int, now_ms: int
    ) -> Sequence[LeaseRun]:
        before = source.snapshot()
        runs = move(self, source, stream, messages_max, bytes_max, now_ms)
        for sequence, term, deadline_ms, count, redelivered, message in before[:1] if runs else ():
            source.reinstate(message, sequence, term, deadline_ms, count, redelivered)
        return runs

    patch.setattr(Mover, "move", copied)


def never_renewed(patch: pytest.MonkeyPatch) -> None:
    """Time counts from the first ask."""
    renewed = LeaseExpiry.renewed

    def only_once(self: LeaseExpiry, lease: Lease) -> None:
        if lease not in self._due_ms:
            renewed(self, lease)

    patch.setattr(LeaseExpiry, "renewed", only_once)


def never_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaseExpiry, "overdue", lambda self, now_ms: None)


def forgotten_by_snapshots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LeaseTable, "commands", lambda self: iter(()))


def not_begun_by_the_next_root(patch: pytest.MonkeyPatch) -> None:
    """It does not know that leases end."""
    patch.setattr(LeaseExpiry, "begin_serving", lambda self: None)


BUGS: dict[str, Plant] = {
    "released-not-logged": unlogged(ReleaseLeased),
    "leased-not-logged": unlogged(LeaseMessages),
    "returned-not-logged": unlogged(ReturnLeased),
    "runs-stay": runs_stay,
    "never-redelivered": never_redelivered,
    "at-the-end-of-the-queue": at_the_end_of_the_queue,
    "stays-in-the-queue": stays_in_the_queue,
    "never-renewed": never_renewed,
    "never-over": never_over,
    "forgotten-by-snapshots": forgotten_by_snapshots,
    "not-begun-by-the-next-root": not_begun_by_the_next_root,
}


def first_found() -> int | None:
    for seed in range(PROGRAMS_MAX):
        books = Books()
        try:
            for step in steps(Random(seed)):
                books.play(step)
        except (AssertionError, KeyError, IndexError):
            return seed
    return None


def test_without_a_bug_nothing_is_found() -> None:
    assert first_found() is None


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    assert first_found() is not None, bug
