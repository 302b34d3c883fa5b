"""What there is to show of a journal: a frozen copy."""

import msgspec


class JournalView(msgspec.Struct, frozen=True):
    first_index: int
    """The first entry from which on all are held whole."""
    last_index: int
    durable_index: int
    commit_index: int
    snapshot_index: int
    file_count: int
    size_bytes: int
    page_file_count: int
    page_file_bytes: int
    page_bytes: int
    """Of pages that are wanted."""
    pending_bytes: int
    """Waiting for a sync."""
    free_bytes: int
    """Of the disk, when it was last asked."""
    space_low: bool
