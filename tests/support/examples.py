"""The number of examples for tests by hypothesis that need more than its default: all, or a part in `make test`.

Decorators read it while the tests are imported, so `quick` has to be called before.
"""

from __future__ import annotations

from typing import Final

import hypothesis

PART: Final = 3
"""`make test` runs one of so many."""
_quick = False


def quick() -> None:
    global _quick
    _quick = True


def examples(count: int) -> int:
    return count // PART if _quick else count


def profile() -> hypothesis.settings:
    """Returns the settings for tests that state no number."""
    return hypothesis.settings(max_examples=examples(hypothesis.settings().max_examples))
