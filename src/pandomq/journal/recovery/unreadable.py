"""Handles a store whose vote record cannot be read, when other brokers have everything it had: it is set aside for a
person.

A new store replaces it, whose broker is a learner; a broker without peers refuses such a store instead, since nothing
else has its contents.
"""

from __future__ import annotations

from pandomq.journal.effects import FileName, Rename, SyncDirectory
from pandomq.journal.events import Flaw, FlawKind
from pandomq.journal.names import STATE, is_kept, outlived
from pandomq.journal.state_file import read_state
from pandomq.journal.work import Work, list_files, perform


def set_unreadable_aside(flaws: list[Flaw]) -> Work[None]:
    """Adds to the flaws if it sets the store aside. Raises VersionFault."""
    found = yield from list_files()
    files = [info.file for info in found]
    if not any(is_kept(file) for file in files) or (yield from read_state(found)) is not None:
        return
    # A set-aside that a crash interrupted is continued under another number; nothing is lost.
    number = next(number for number in range(1, len(files) + 2) if not any(_is_of(file, number) for file in files))
    renames = [Rename(file, outlived(file, number)) for file in files if is_kept(file) or file == STATE]
    yield from perform(*renames, SyncDirectory())
    text = (
        f"the vote record is unreadable; the store is set aside as outlived-{number:06d}, and the broker starts "
        "with a new one"
    )
    flaws.append(Flaw(FlawKind.STATE, STATE, 0, text))


def _is_of(file: FileName, number: int) -> bool:
    return file.startswith(outlived(FileName(""), number))
