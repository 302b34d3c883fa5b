"""Configures Python's collection of garbage cycles so that it does not block the loop for long.

With the compiled kernel everything that belongs to a connection is freed by reference count; requests over HTTP create
cycles, which are short-lived. So young objects are collected often, and few at a time. Survivors are frozen: they are
not examined again, however many connections there are. A collection of everything that belongs to ten thousand
connections would take longer than a lease. In case long-lived objects do form cycles, a full collection runs from time
to time, as long as it does not take long.

The objects of the plain kernel refer to each other: with it full collections run, rarely.
"""

import gc
from typing import Final

from pandomq import kernel

THRESHOLDS_WITH_CYCLES: Final = (50_000, 50, 100)
YOUNG_OBJECTS: Final = 2_000
"""A millisecond or two."""
YOUNG_COLLECTIONS: Final = 8
"""After this many collections the survivors are examined once more, and then frozen."""
FULL_EVERY_S: Final = 3_600
FULL_OBJECTS_MAX: Final = 100_000
"""The number of objects above which there is no full collection: it would take more than a tenth of a second."""


def begin() -> None:
    """To be called when all objects of a broker's start exist."""
    gc.collect()
    gc.freeze()
    if kernel.KIND == "fast":
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, 1)
        gc.callbacks.append(_collected)
    else:
        gc.set_threshold(*THRESHOLDS_WITH_CYCLES)


def look_at_all() -> None:
    """To be called every `FULL_EVERY_S`."""
    if kernel.KIND == "fast" and gc.get_freeze_count() <= FULL_OBJECTS_MAX:
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def _collected(phase: str, facts: dict[str, int]) -> None:
    if phase == "stop" and facts["generation"] >= 1:
        gc.freeze()
