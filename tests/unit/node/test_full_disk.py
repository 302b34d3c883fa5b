"""A root with a full disk hands over: at once when it fills up in office, after a while when it was full before."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pandomq.node.full_disk import PATIENCE_MS, FullDisk
from pandomq.node.replication import Replication


class Office:
    """Stands for the replication: counts what it is asked for."""

    def __init__(self) -> None:
        self.in_office = True
        self.replicated = True
        self.asked = 0

    def hand_over(self, successor: str | None, on_ended: Callable[[bool, str], None]) -> None:
        assert successor is None
        self.asked += 1
        on_ended(False, "nobody is in sync")


def opened() -> tuple[FullDisk, Office]:
    office = Office()
    return FullDisk(cast(Replication, office)), office


def test_a_root_goes_at_once_and_tries_again_after_a_while() -> None:
    disk, office = opened()
    disk.tick(1_000)
    assert office.asked == 0
    disk.is_low()
    for now_ms in (2_000, 2_001, 2_000 + PATIENCE_MS - 1):
        disk.tick(now_ms)
    assert office.asked == 1
    disk.tick(2_000 + PATIENCE_MS)
    assert office.asked == 2
    disk.has_room()
    disk.tick(2_000 + 3 * PATIENCE_MS)
    assert office.asked == 2


def test_who_is_elected_with_a_full_disk_stays_for_a_while() -> None:
    disk, office = opened()
    office.in_office = False
    disk.is_low()
    disk.tick(1_000)
    office.in_office = True
    disk.tick(2_000)
    disk.tick(1_999 + PATIENCE_MS)
    assert office.asked == 0
    disk.tick(2_000 + PATIENCE_MS)
    assert office.asked == 1


def test_a_broker_alone_has_nobody_to_hand_over_to() -> None:
    disk, office = opened()
    office.replicated = False
    disk.is_low()
    for now_ms in range(0, 5 * PATIENCE_MS, 1_000):
        disk.tick(now_ms)
    assert office.asked == 0
