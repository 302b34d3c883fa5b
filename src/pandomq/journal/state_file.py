"""The hard state's file at the opening of a store: both copies are read or written at once.

The file has its final size from the start. If a save made it longer, a crash could keep the new content with the old
size: a copy without its last bytes, which looks like damage.
"""

from typing import Final

from pandomq.journal.effects import FileInfo, Resize, SyncFile, Write
from pandomq.journal.hard_state import COPY_OFFSETS, StoreState, decode_copy, encode_copy
from pandomq.journal.limits import STATE_COPY_BYTES
from pandomq.journal.names import STATE
from pandomq.journal.work import Work, perform, read

STATE_BYTES: Final = len(COPY_OFFSETS) * STATE_COPY_BYTES


def write_state(state: StoreState, counter: int) -> Work[None]:
    data = encode_copy(state, counter)
    yield from perform(Resize(STATE, STATE_BYTES))
    for offset in COPY_OFFSETS:
        yield from perform(Write(STATE, offset, (data,)), SyncFile(STATE))


def read_state(files: tuple[FileInfo, ...]) -> Work[tuple[int, StoreState] | None]:
    """Counter and state of the newer good copy; None if there is none. Raises VersionFault."""
    if not any(info.file == STATE for info in files):
        return None
    copies = []
    for offset in COPY_OFFSETS:
        copies.append(decode_copy((yield from read(STATE, offset, STATE_COPY_BYTES))))
    good = [copy for copy in copies if copy is not None]
    return max(good, key=lambda copy: copy[0]) if good else None
