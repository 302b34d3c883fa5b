"""A rate in RabbitMQ's form: {"rate": 12.5}, beside its counter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

Rates = Sequence[float]
"""Rates in the order of the counters; empty if nothing is known yet."""


class Rate(msgspec.Struct, frozen=True, gc=False):
    rate: float


NO_RATE: Final = Rate(0.0)
