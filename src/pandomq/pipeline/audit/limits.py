"""How much an audit holds at a time, and how much of what it finds it names."""

from typing import Final

BLOCK_ENTRIES: Final = 1024
"""Logs are compared by digests of so many entries; where those differ, entry by entry."""
EXACT_BLOCKS_MAX: Final = 256
"""That are compared entry by entry; where logs differ in more, the rest is said not to be judged."""
NAMED_MAX: Final = 1000
"""Violations of one promise that are named; how many more there are is said."""
TASK_BYTES: Final = 64 * 1024 * 1024
"""Of files, read by one task; a file is never divided."""
TOLERANCE_MS: Final = 5_000
"""By so much the clocks of clients and brokers may differ, or a client be late in writing something down."""
LEDGER_BLOCK_BYTES: Final = 16 * 1024 * 1024
COMMAND_BYTES_MAX: Final = 1024 * 1024
"""Of a command that the driver looks at; a declaration is never as large."""
BATCH_ROWS: Final = 100_000
"""Of messages that leave a task at a time."""
EXITS_MAX: Final = 2_000_000
"""Messages that one record may take out of a queue and that are looked at one by one; of more, as many."""
