"""A copy of a machine's store, made while it ran. After it is restored, the store lacks entries that the machine
acknowledged.

`pandomq store backup` marks its copies: the store says that it is in doubt, and its broker stays passive until a root
admits it, like a broker that has lost its disk. A copy made by a file system has no mark, and its age cannot be
detected: it does no harm if all other stores have everything that this one ever had. The operator who restores it must
ensure that.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pandomq.journal.effects import FileName
from pandomq.journal.hard_state import COPY_OFFSETS, decode_copy, encode_copy
from pandomq.journal.limits import STATE_COPY_BYTES
from pandomq.journal.names import STATE

Files = Mapping[FileName, bytes]


def marked(files: Files) -> Files:
    """Returns the copy as `pandomq store backup` makes it."""
    content = bytearray(files[STATE])
    found = [decode_copy(bytes(content[offset : offset + STATE_COPY_BYTES])) for offset in COPY_OFFSETS]
    counter, state = max((copy for copy in found if copy is not None), key=lambda copy: copy[0])
    data = encode_copy(msgspec.structs.replace(state, doubtful=True), counter)
    for offset in COPY_OFFSETS:
        content[offset : offset + STATE_COPY_BYTES] = data.ljust(STATE_COPY_BYTES, b"\0")
    return {**files, STATE: bytes(content)}
