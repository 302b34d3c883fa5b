"""The part of the log that a secondary gets: every entry in its place and with its term, but only a part of its
contents.

Only the owner of the entries knows which part. The replica's own entries are complete. A primary cannot use a store of
excerpts, nor a secondary a complete one: a broker with the wrong kind sets it aside once it has received a message of a
root of its cluster, and begins again with an empty one. Until then it is a learner, since it is in doubt about itself
while it holds excerpts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from pandomq.replica.protocol.entries import LogEntry, is_own

if TYPE_CHECKING:
    from pandomq.replica.core import Core


class Excerpts(Protocol):
    def of(self, payload: bytes) -> bytes:
        """The excerpt of a broker's entry; the excerpt of an excerpt is equal to it."""

    def is_empty(self, excerpt: bytes) -> bool:
        """The excerpt holds nothing that a secondary waits for."""


class FullExcerpts:
    """Everything."""

    def of(self, payload: bytes) -> bytes:
        return payload

    def is_empty(self, excerpt: bytes) -> bool:
        return False


def excerpt_of(excerpts: Excerpts, entry: LogEntry) -> LogEntry:
    if is_own(entry.payload):
        return entry
    payload = excerpts.of(entry.payload)
    return entry if payload is entry.payload else LogEntry(entry.term, payload)


def is_for(core: Core, *, excerpts: bool) -> bool:
    """Whether entries from a root can go into this store: a primary does not store excerpts. A root that does not know
    this broker's kind yet learns it from its next greeting."""
    if excerpts and not core.observer:
        return False
    if core.record.excerpts is core.observer:
        return True
    if core.tail.last_index > 0:
        held, wanted = ("excerpts", "all") if core.record.excerpts else ("all", "excerpts")
        core.set_aside(f"this store has {held} of the log, but this broker's role needs {wanted} of it")
        return False
    joining = core.record.joining or core.observer
    core.note(msgspec.structs.replace(core.record, excerpts=core.observer, joining=joining))
    return True
