"""How the C library's allocator treats large blocks.

Left alone, it stops giving blocks of a size back to the system once one of that size was freed. Pages of messages and
entries of the log, some hundred kilobytes each, then lie scattered between small blocks, and the process stays as large
as it ever was. A fixed limit keeps them apart.
"""

import ctypes
from typing import Final

from pandomq.limits import KIB, MIB

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 64 * KIB
SPARE_BYTES: Final = 1 * MIB
"""Free memory at the end of the heap that is kept."""


def keep_large_blocks_apart() -> None:
    """Does nothing where the C library is another one than GNU's."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(M_TRIM_THRESHOLD, SPARE_BYTES)
