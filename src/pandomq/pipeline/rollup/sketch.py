"""Distributions that can be added: counts of values by buckets, each some four per cent wider than the one below it.

A bucket's value is within ERROR of every value that fell into it, however many are added.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

ERROR: Final = 0.02
GROWTH: Final = (1 + ERROR) / (1 - ERROR)
UNKNOWN: Final = -1
"""The bucket of values that are missing, which are negative."""

Array = npt.NDArray[Any]


def buckets_of(values: Array) -> Array:
    """For integers: 0 has a bucket of its own."""
    found = np.ceil(np.log(np.maximum(values, 1)) / math.log(GROWTH)).astype(np.int32) + 1
    return np.where(values > 0, found, np.where(values == 0, 0, UNKNOWN)).astype(np.int32)


def values_of(buckets: Array) -> Array:
    """The value of a bucket; NaN for none."""
    values = 2 * np.power(GROWTH, buckets - 1.0) / (GROWTH + 1)
    return np.where(buckets > 0, values, np.where(buckets == 0, 0.0, np.nan))


def bucket_at(part: float, weights: Array, firsts: Array, ends: Array) -> Array:
    """Of runs of ascending buckets with their weights, one run after the other: the place in each at which this part of
    its weight is reached; its last place if it has no weight."""
    risen = np.concatenate(([0.0], np.cumsum(weights)))
    whole = risen[ends] - risen[firsts]
    # Slightly less, so that rounding does not miss an exact match.
    wanted = risen[firsts] + whole * (part - 1e-9)
    return np.clip(np.searchsorted(risen[1:], wanted, side="left"), firsts, ends - 1)
