"""A frozen copy of a journal's state, for display."""

import msgspec


class JournalView(msgspec.Struct, frozen=True):
    first_index: int
    """The first index from which all entries are held whole."""
    last_index: int
    durable_index: int
    commit_index: int
    snapshot_index: int
    file_count: int
    size_bytes: int
    page_file_count: int
    page_file_bytes: int
    page_bytes: int
    """Bytes of pages that are needed."""
    pending_bytes: int
    """Waiting for a sync."""
    free_bytes: int
    """Free bytes of the disk, at the last measurement."""
    space_low: bool
