"""A copy of a machine's store, made while it ran. Once it is put back the machine remembers less than it has said.

`pandomq store backup` marks what it copies: the store says that it is in doubt, and its broker keeps still until a root
admits it, like one that has lost its disk. A copy that a file system made has no mark, and nothing in it tells that it
is old: it harms nothing if all others have all that this one ever had; that is for whoever puts it back to see to.
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
    """As the broker's own tool makes it."""
    content = bytearray(files[STATE])
    found = [decode_copy(bytes(content[offset : offset + STATE_COPY_BYTES])) for offset in COPY_OFFSETS]
    counter, state = max((copy for copy in found if copy is not None), key=lambda copy: copy[0])
    data = encode_copy(msgspec.structs.replace(state, doubtful=True), counter)
    for offset in COPY_OFFSETS:
        content[offset : offset + STATE_COPY_BYTES] = data.ljust(STATE_COPY_BYTES, b"\0")
    return {**files, STATE: bytes(content)}
