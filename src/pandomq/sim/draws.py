"""Draws that worlds make so often that the time matters."""

from __future__ import annotations

from random import Random


def draw_between(random: Random, low: int, high: int) -> int:
    """Returns what `random.randint(low, high)` returns, and leaves the generator in the same state, in less time."""
    width = high - low + 1
    bits = width.bit_length()
    drawn = random.getrandbits(bits)
    while drawn >= width:
        drawn = random.getrandbits(bits)
    return low + drawn
