"""A store whose vote record cannot be read, among others who have all that it had: it is set aside for a person.

What is left is a new store, whose broker is a learner; alone, a broker refuses such a store instead, since nobody could
give it back what is in there.
"""

from __future__ import annotations

from pandomq.journal.effects import FileName, Rename, SyncDirectory
from pandomq.journal.events import Flaw, FlawKind
from pandomq.journal.names import STATE, is_kept, outlived
from pandomq.journal.state_file import read_state
from pandomq.journal.work import Work, list_files, perform


def set_unreadable_aside(flaws: list[Flaw]) -> Work[None]:
    """Adds to the flaws if it does. Raises VersionFault."""
    found = yield from list_files()
    files = [info.file for info in found]
    if not any(is_kept(file) for file in files) or (yield from read_state(found)) is not None:
        return
    # Whatever a crash leaves undone goes under another number, and is kept all the same.
    number = next(number for number in range(1, len(files) + 2) if not any(_is_of(file, number) for file in files))
    renames = [Rename(file, outlived(file, number)) for file in files if is_kept(file) or file == STATE]
    yield from perform(*renames, SyncDirectory())
    text = f"the vote record cannot be read; the store is set aside as outlived-{number:06d}, and this one is new"
    flaws.append(Flaw(FlawKind.STATE, STATE, 0, text))


def _is_of(file: FileName, number: int) -> bool:
    return file.startswith(outlived(FileName(""), number))
