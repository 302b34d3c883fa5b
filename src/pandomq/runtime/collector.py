"""How Python looks for garbage in cycles without keeping the loop for long.

With the compiled kernel all that a connection is made of is freed by count; cycles arise with requests over HTTP, and
die young. So young objects are looked at often, and few at a time. What lives on is frozen: nobody looks at it again,
however many connections there are. A collection of all that ten thousand of them are made of would take longer than a
lease. In case something does leave cycles behind after a long life, all is looked at from time to time, as long as that
does not take long.

The parts of the plain kernel know each other: with it all is looked at, rarely.
"""

import gc
from typing import Final

from pandomq import kernel

THRESHOLDS_WITH_CYCLES: Final = (50_000, 50, 100)
YOUNG_OBJECTS: Final = 2_000
"""A millisecond or two."""
YOUNG_COLLECTIONS: Final = 8
"""After so many of them what lived through them is looked at once more, and then frozen."""
FULL_EVERY_S: Final = 3_600
FULL_OBJECTS_MAX: Final = 100_000
"""More than a tenth of a second."""


def begin() -> None:
    """When all that a broker needs to begin with is there."""
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
