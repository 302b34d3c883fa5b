"""A root with a full disk hands over: at once when it fills up in office, after a while when it was full before."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

from pandomq.node.log.full_disk import PATIENCE_MS, FullDisk
from pandomq.node.log.replication import Replication


class Peers:
    """Stands for the replication: counts what it is asked for."""

    def __init__(self) -> None:
        self.life = SimpleNamespace(took_over=True)
        self.replicated = True
        self.asked = 0

    def hand_over(self, successor: str | None, on_ended: Callable[[bool, str], None]) -> None:
        assert successor is None
        self.asked += 1
        on_ended(False, "nobody is in sync")


def opened() -> tuple[FullDisk, Peers]:
    peers = Peers()
    return FullDisk(cast(Replication, peers)), peers


def test_a_root_hands_over_at_once_and_tries_again_after_a_while() -> None:
    disk, peers = opened()
    disk.tick(1_000)
    assert peers.asked == 0
    disk.is_low(1_000, 2_000)
    for now_ms in (2_000, 2_001, 2_000 + PATIENCE_MS - 1):
        disk.tick(now_ms)
    assert peers.asked == 1
    disk.tick(2_000 + PATIENCE_MS)
    assert peers.asked == 2
    disk.has_room()
    disk.tick(2_000 + 3 * PATIENCE_MS)
    assert peers.asked == 2


def test_a_root_that_is_elected_with_a_full_disk_stays_for_a_while() -> None:
    disk, peers = opened()
    peers.life.took_over = False
    disk.is_low(1_000, 2_000)
    disk.tick(1_000)
    peers.life.took_over = True
    disk.tick(2_000)
    disk.tick(1_999 + PATIENCE_MS)
    assert peers.asked == 0
    disk.tick(2_000 + PATIENCE_MS)
    assert peers.asked == 1


def test_a_broker_alone_asks_for_no_hand_over() -> None:
    disk, peers = opened()
    peers.replicated = False
    disk.is_low(1_000, 2_000)
    for now_ms in range(0, 5 * PATIENCE_MS, 1_000):
        disk.tick(now_ms)
    assert peers.asked == 0
