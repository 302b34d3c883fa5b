"""Filters a listing by name: a part of it, or a regular expression, without regard to case.

A regular expression can be made so that matching a short name takes for ever, and the broker's loop would wait for it.
So what may multiply the work is refused: repeated groups, references, looking around, and more than a few repeats. What
is left is at worst quadratic in a name of 255 bytes, and whoever filters counts the time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pandomq.admin.limits import NAME_FILTER_CHARS_MAX, NAME_FILTER_REPEATS_MAX
from pandomq.admin.refusals import Refusal, bad_request

_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]")
_REPEAT: Final = re.compile(r"[*+{]|(?<![*+?}(])\?")


def name_filter(text: str, *, use_regex: bool) -> Callable[[str], bool]:
    """Raises Refusal (400)."""
    if len(text) > NAME_FILTER_CHARS_MAX:
        raise bad_request(f"name is longer than {NAME_FILTER_CHARS_MAX} characters")
    if not use_regex:
        wanted = text.lower()
        return lambda name: wanted in name.lower()
    try:
        pattern = re.compile(text, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError):
        raise bad_request("Pagination parameters are invalid") from None
    _check_cost(text)
    return lambda name: pattern.search(name) is not None


def _check_cost(text: str) -> None:
    if re.search(r"\\[1-9]|\(\?(?!:)", text):
        raise _too_costly("references and groups with a meaning of their own")
    # Escaped characters and classes stand for one character each.
    plain = _ESCAPE.sub("x", _CLASS.sub("x", text))
    if _REPEATED_GROUP.search(plain):
        raise _too_costly("repeated groups")
    if len(_REPEAT.findall(plain)) > NAME_FILTER_REPEATS_MAX:
        raise _too_costly(f"more than {NAME_FILTER_REPEATS_MAX} repeats")


def _too_costly(what: str) -> Refusal:
    return bad_request(f"{what} in a filter could take too long and are refused")
