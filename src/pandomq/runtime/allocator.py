"""How the C library's allocator treats large blocks.

Left alone, it stops giving blocks of a size back to the system once one of that size was freed, up to 32 MiB, and the
process stays about as large as it ever was. A fixed limit keeps the largest apart. It must not be lower than what one
batch reads and writes: memory fresh from the system costs a fault a page, and with 64 KiB a broker did half the work.
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
    """Does nothing where the C library is another one than GNU's."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(M_TRIM_THRESHOLD, SPARE_BYTES)
