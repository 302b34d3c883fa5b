"""Opens a store: scans it, repairs what a crash has left, and ensures that all remaining data is on disk.

A crash may interrupt every step here, at any point, and the next opening begins again: a cut is carried out under a
noted intention or concerns only entries that were never finished; every other write restores what should be there
already.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.doubt import at_opening
from pandomq.journal.effects import Create, Delete, Effect, SyncDirectory, SyncFile, Write
from pandomq.journal.hard_state import StoreState
from pandomq.journal.limits import SECTOR_BYTES, JournalSettings
from pandomq.journal.names import STATE
from pandomq.journal.recovery.store_scan import StoreScan
from pandomq.journal.segments.cutting import shorten
from pandomq.journal.segments.layout import (
    BLANK,
    MARK_SECTORS,
    OPENING,
    OPENING_SECTOR,
    SEAL_SECTOR,
    SLOT_BYTES,
    TABLE_OFFSET,
    Identity,
    encode_identity,
    encode_sector,
)
from pandomq.journal.segments.log_end import SegmentTail
from pandomq.journal.segments.open_segment import OpenSegment
from pandomq.journal.state_file import STATE_BYTES, write_state
from pandomq.journal.work import Work, perform


class Opened(NamedTuple):
    identity: Identity
    state: StoreState
    counter: int
    open_segment: OpenSegment | None


def settle(store_scan: StoreScan, settings: JournalSettings, new: StoreState, boot_id: str) -> Work[Opened]:
    """Does the writes that must precede the use of the store; `new` is the state of a new store. A damaged log is left
    unchanged."""
    file_scan = store_scan.file_scan
    if file_scan.state is None:
        return (yield from _make(at_opening(new, settings.fsync, boot_id), store_scan))
    state = at_opening(file_scan.state, settings.fsync, boot_id)
    identity = Identity(ClusterId(state.cluster_id), NodeName(state.node_name))
    end = store_scan.end
    assert end is not None
    damaged = end.damage is not None
    # A snapshot that repairs a damaged log arrives under the names of an earlier one that was never completed.
    yield from perform(*(Delete(file) for file in file_scan.unfinished))
    if not damaged:
        # This includes an unreadable snapshot: it is not needed if the log is readable.
        yield from perform(*(Delete(file) for file in file_scan.leftovers))
        yield from perform(*(Delete(unopened.file) for unopened in file_scan.unopened))
    yield from perform(SyncDirectory())
    for tail in end.tails:
        yield from _mend(tail, identity)
    counter = file_scan.counter
    if end.damage is not None and not end.damage.end_known:
        state = msgspec.structs.replace(state, doubtful=True)
    if not damaged:
        if end.cut is not None:
            yield from shorten(end.cut)
        newest = store_scan.catalogue.newest_segment
        state = msgspec.structs.replace(state, segment_newest=newest, cut_from=0)
    is_short = file_scan.sizes[STATE] < STATE_BYTES
    if state != file_scan.state or is_short or any(flaw.file == STATE for flaw in file_scan.flaws):
        counter += 1
        yield from write_state(state, counter)
    return Opened(identity, state, counter, None if damaged else _resume(store_scan, settings, identity))


def _make(state: StoreState, store_scan: StoreScan) -> Work[Opened]:
    """Creates a store. If this is interrupted before the hard state is complete, the next opening creates it again."""
    identity = Identity(ClusterId(state.cluster_id), NodeName(state.node_name))
    file_scan = store_scan.file_scan
    yield from perform(*(Delete(file) for file in (*file_scan.unfinished, *file_scan.leftovers)))
    if STATE in file_scan.sizes:
        yield from perform(Delete(STATE))
    yield from perform(Create(STATE), SyncDirectory())
    yield from write_state(state, 1)
    return Opened(identity, state, 1, None)


def _mend(tail: SegmentTail, identity: Identity) -> Work[None]:
    """Rewrites wrong slots and heads, and syncs the file: parts of it may never have been synced."""
    file, segment = tail.found.file, tail.segment
    effects: list[Effect] = [
        Write(file, TABLE_OFFSET + place * SLOT_BYTES, (slot,)) for place, slot in tail.scan.mended.items()
    ]
    if tail.found.head_damaged and segment.positions:
        opening = OPENING.pack(segment.first_index, 0, segment.chain_before)
        effects.append(Write(file, 0, (encode_identity(identity, segment.number, segment.slot_count),)))
        effects.append(Write(file, OPENING_SECTOR * SECTOR_BYTES, (encode_sector(opening, tail.found.seed),)))
        # The content of marks and seal is known from elsewhere by now, or is not needed.
        sectors = MARK_SECTORS if tail.found.seal is not None else (*MARK_SECTORS, SEAL_SECTOR)
        effects += [Write(file, sector * SECTOR_BYTES, (BLANK,)) for sector in sectors]
    yield from perform(*effects, SyncFile(file))


def _resume(store_scan: StoreScan, settings: JournalSettings, identity: Identity) -> OpenSegment | None:
    """The last segment, if entries can be added to it."""
    end = store_scan.end
    assert end is not None
    if not end.tails:
        return None
    tail = end.tails[-1]
    segment, scan = tail.segment, tail.scan
    if segment.sealed or not segment.positions or segment is not store_scan.catalogue.last:
        return None
    table = bytearray(tail.table.data.ljust(len(segment.positions) * SLOT_BYTES, b"\0"))
    for place, slot in scan.mended.items():
        table[place * SLOT_BYTES : (place + 1) * SLOT_BYTES] = slot
    del table[len(segment.positions) * SLOT_BYTES :]
    place_in = OpenSegment(segment, tail.found.seed, settings.segment_bytes, 0)
    term_count = store_scan.terms.count(segment.first_index, segment.last_index)
    counter = max((mark.counter for mark in tail.found.marks), default=0)
    place_in.resume(bytes(table), store_scan.terms.last, term_count, counter)
    return place_in
