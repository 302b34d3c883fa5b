"""How the C library's allocator treats large blocks.

By default it stops returning blocks of a size to the system once one of that size was freed, up to 32 MiB, and the
process stays at about its largest size. With a fixed limit the largest blocks are mapped separately. The limit must not
be lower than what one batch reads and writes: memory fresh from the system costs a page fault per page, and with 64 KiB
a broker's throughput was halved.
"""

import ctypes
from typing import Final

from pandomq.limits import MIB

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 4 * MIB
SPARE_BYTES: Final = 32 * MIB
"""Free memory at the end of the heap that is kept."""


def keep_large_blocks_apart() -> None:
    """Does nothing unless the C library is GNU's."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(M_TRIM_THRESHOLD, SPARE_BYTES)
