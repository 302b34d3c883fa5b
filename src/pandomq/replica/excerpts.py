"""What a secondary gets of the log: every entry in its place and of its term, but only a part of what is in it.

Which part that is only the owner of the entries knows. The replica's own entries are given whole. A store of excerpts
is of no use to a primary, nor a whole one to a secondary: who finds itself with the wrong kind puts it aside, once a
root of its cluster has been heard, and begins again with an empty one. Until then it is a learner, since it is in doubt
about itself for as long as it holds excerpts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from pandomq.replica.entries import LogEntry, is_own

if TYPE_CHECKING:
    from pandomq.replica.core import Core


class Excerpts(Protocol):
    def of(self, payload: bytes) -> bytes:
        """Of an entry of the broker; of an excerpt it is the same once more."""

    def is_empty(self, excerpt: bytes) -> bool:
        """There is nothing in it that anybody waits for."""


class Whole:
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
    """Whether what a root sends can go into this store: to a primary not if it is excerpts. A root that does not know
    yet what this broker is finds out by its next greeting."""
    if excerpts and not core.observer:
        return False
    if core.record.excerpts is core.observer:
        return True
    if core.tail.last_index > 0:
        held, wanted = ("excerpts", "all") if core.record.excerpts else ("all", "excerpts")
        core.set_aside(f"it holds {held} of the log, and this broker is to hold {wanted} of it")
        return False
    joining = core.record.joining or core.observer
    core.note(msgspec.structs.replace(core.record, excerpts=core.observer, joining=joining))
    return True
