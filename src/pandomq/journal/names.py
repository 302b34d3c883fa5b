"""The names of the files of a store.

Everything of one log is in one directory. A file whose name ends in `.tmp` is not finished, and is deleted when the
store is opened; names that are not listed here are left alone.
"""

import re
from typing import Final

from pandomq.journal.effects import FileName

LOCK: Final = FileName("lock")
STATE: Final = FileName("state")
RESERVE: Final = FileName("reserve")
UNFINISHED: Final = ".tmp"

_SEGMENT = re.compile(r"segment-(\d{12})\.log")
_PAGES = re.compile(r"pages-(\d{12})\.page")
_SNAPSHOT = re.compile(r"snapshot-(\d{20})\.snap")
_ASIDE = re.compile(r"aside-\d{20}-(\d{12})\.log")
_RETAINED = re.compile(r"retained-(\d{12})\.log")
_ARRIVING = "arriving-"


_KEPT = (_SEGMENT, _PAGES, _SNAPSHOT, _ASIDE)


def segment_file(number: int) -> FileName:
    return FileName(f"segment-{number:012d}.log")


def page_file(number: int) -> FileName:
    return FileName(f"pages-{number:012d}.page")


def snapshot_file(index: int) -> FileName:
    return FileName(f"snapshot-{index:020d}.snap")


def aside_file(index: int, number: int) -> FileName:
    """Kept for a person: entries that were cut off the log at this index; the number distinguishes cuts at the same
    one."""
    return FileName(f"aside-{index:020d}-{number:012d}.log")


def retained_file(number: int) -> FileName:
    """A segment that is kept only for an audit."""
    return FileName(f"retained-{number:012d}.log")


def unfinished(file: FileName) -> FileName:
    return FileName(file + UNFINISHED)


def arriving(file: FileName) -> FileName:
    """The temporary name of a file of another broker's snapshot, until it replaces the store."""
    return FileName(_ARRIVING + file)


def arriving_name(file: FileName) -> FileName | None:
    """The final name of such a file; None for other names."""
    return FileName(file.removeprefix(_ARRIVING)) if file.startswith(_ARRIVING) else None


def outlived(file: FileName, number: int) -> FileName:
    """Kept for a person: a file of a store that was set aside."""
    return FileName(f"outlived-{number:06d}-{file}")


def is_kept(file: str) -> bool:
    """Part of the store's contents, beside its hard state: belongs in a copy of it."""
    return any(pattern.fullmatch(file) for pattern in _KEPT)


def segment_number(file: str) -> int | None:
    return _number(_SEGMENT, file)


def page_number(file: str) -> int | None:
    return _number(_PAGES, file)


def snapshot_index(file: str) -> int | None:
    return _number(_SNAPSHOT, file)


def aside_number(file: str) -> int | None:
    return _number(_ASIDE, file)


def retained_number(file: str) -> int | None:
    return _number(_RETAINED, file)


def _number(pattern: re.Pattern[str], file: str) -> int | None:
    match = pattern.fullmatch(file)
    return None if match is None else int(match.group(1))
