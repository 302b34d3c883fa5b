"""The memory limits of an audit, and the limits of its report."""

from typing import Final

BLOCK_ENTRIES: Final = 1024
"""Logs are compared by digests of this many entries; where those differ, entry by entry."""
EXACT_BLOCKS_MAX: Final = 256
"""Blocks that are compared entry by entry; if logs differ in more, the rest is reported as not judged."""
NAMED_MAX: Final = 1000
"""Violations of one guarantee that are listed; further ones are counted."""
TASK_BYTES: Final = 64 * 1024 * 1024
"""Bytes of files that one task reads; a file is never divided."""
TOLERANCE_MS: Final = 5_000
"""Maximum difference between the clocks of clients and brokers, and maximum delay of a client's ledger line."""
LEDGER_BLOCK_BYTES: Final = 16 * 1024 * 1024
COMMAND_BYTES_MAX: Final = 1024 * 1024
"""Size of a command that the driver examines; a declaration is never that large."""
BATCH_ROWS: Final = 100_000
"""Messages that a task returns at a time."""
EXITS_MAX: Final = 2_000_000
"""Messages of one record of removals that are examined one by one; of a larger record only this many."""
