"""Figures of loads at everyday rates: by load and broker, one for each round."""

from __future__ import annotations

from statistics import median
from typing import Final, NamedTuple

import msgspec

from pandomq.bench.load import Load
from tools.compare.peers.ledger import FAST, RABBITMQ
from tools.compare.peers.machine import Machine

RATES: Final = (200, 1_000, 2_000, 5_000)
QUORUM: Final = f"{RABBITMQ}, quorum queue"
CPU: Final = "cpu_us"
CONFIRM_P50: Final = "confirm_p50_us"
CONFIRM_P99: Final = "confirm_p99_us"
UNITS: Final = (CPU, CONFIRM_P50, CONFIRM_P99)


class Kind(NamedTuple):
    name: str
    persistent: bool
    peers: tuple[str, ...]
    """The brokers of the same kind, of which PandoMQ is compared with the last."""


KINDS: Final = (
    Kind("transient", False, (RABBITMQ,)),
    Kind("persistent", True, (RABBITMQ, QUORUM)),
)


class EverydayFigures(msgspec.Struct):
    day: str
    machine: Machine
    seconds: float
    versions: dict[str, str]
    others_share: float
    rounds: dict[str, dict[str, list[dict[str, float]]]]
    """By kind and rate, and by broker: the figures of each round."""

    def median(self, subject: str, broker: str, unit: str) -> float | None:
        found = [figures[unit] for figures in self.rounds.get(subject, {}).get(broker, ()) if unit in figures]
        return median(found) if found else None

    def ratio(self, subject: str, peer: str, unit: str) -> float | None:
        """PandoMQ's figure divided by the peer's: the median over the rounds."""
        rounds = self.rounds.get(subject, {})
        pairs = zip(rounds.get(FAST, ()), rounds.get(peer, ()), strict=False)
        found = [own[unit] / other[unit] for own, other in pairs if unit in own and unit in other]
        return median(found) if found else None


def subject_of(kind: Kind, rate: int) -> str:
    return f"{kind.name}, {rate:,}/s"


def load_of(kind: Kind, rate: int, broker: str, seconds: float) -> Load:
    """One publisher with confirms and one consumer that acks each message, 1 KiB."""
    arguments: dict[str, bool | int | float | str] = {"x-queue-type": "quorum"} if broker == QUORUM else {}
    return Load(
        url="",
        size_bytes=1024,
        rate=rate,
        confirm_window=1_000,
        auto_ack=False,
        ack_every=1,
        prefetch=100,
        warm_up_s=1.0,
        duration_s=seconds,
        persistent=kind.persistent,
        durable=kind.persistent,
        queue_arguments=arguments,
    )
