"""Filters a listing by name: by a part of it, or by a regular expression, case-insensitively.

The expression is matched by the broker's own patterns, in time that is linear in the name: a backtracking matcher could
block the broker's loop for ever. The caller limits the time nevertheless.
"""

from __future__ import annotations

from collections.abc import Callable

from pandomq.admin.limits import NAME_FILTER_CHARS_MAX
from pandomq.admin.refusals import bad_request
from pandomq.broker.administration.pattern_syntax import PatternError
from pandomq.broker.administration.patterns import compile_pattern


def name_filter(text: str, *, use_regex: bool) -> Callable[[str], bool]:
    """Raises Refusal (400)."""
    if len(text) > NAME_FILTER_CHARS_MAX:
        raise bad_request(f"name is longer than {NAME_FILTER_CHARS_MAX} characters")
    if not use_regex:
        wanted = text.lower()
        return lambda name: wanted in name.lower()
    try:
        return compile_pattern(f"(?i){text}").matches
    except PatternError:
        raise bad_request("Pagination parameters are invalid") from None
