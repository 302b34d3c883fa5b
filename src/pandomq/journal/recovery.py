"""Opens a store: examines it, puts right what a crash has left, and makes sure that what is kept is on the disk.

Everything here may itself be cut short by a crash, at any point, and be begun again: a cut is carried out under a noted
intention or concerns only what was never finished; whatever is written otherwise is what should be there already.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.cutting import shorten
from pandomq.journal.doubt import at_opening
from pandomq.journal.effects import Create, Delete, Effect, SyncDirectory, SyncFile, Write
from pandomq.journal.examination import Examination
from pandomq.journal.hard_state import StoreState
from pandomq.journal.layout import (
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
from pandomq.journal.limits import SECTOR_BYTES, JournalSettings
from pandomq.journal.log_end import Tail
from pandomq.journal.names import STATE
from pandomq.journal.open_segment import OpenSegment
from pandomq.journal.state_file import STATE_BYTES, write_state
from pandomq.journal.work import Work, perform


class Opened(NamedTuple):
    identity: Identity
    state: StoreState
    counter: int
    open_segment: OpenSegment | None


def settle(examination: Examination, settings: JournalSettings, new: StoreState, boot_id: str) -> Work[Opened]:
    """Writes what has to be written before the store is used; `new` is what a new one begins with. A damaged log is
    left as it is."""
    survey = examination.survey
    if survey.state is None:
        return (yield from _make(at_opening(new, settings.fsync, boot_id), examination))
    state = at_opening(survey.state, settings.fsync, boot_id)
    identity = Identity(ClusterId(state.cluster_id), NodeName(state.node_name))
    end = examination.end
    assert end is not None
    damaged = end.damage is not None
    if not damaged:
        # Also a snapshot that cannot be read: with a log that can, nobody needs it.
        yield from perform(*(Delete(file) for file in survey.leftovers))
        yield from perform(*(Delete(unopened.file) for unopened in survey.unopened))
    yield from perform(SyncDirectory())
    for tail in end.tails:
        yield from _mend(tail, identity)
    counter = survey.counter
    if end.damage is not None and not end.damage.end_known:
        state = msgspec.structs.replace(state, doubtful=True)
    if not damaged:
        if end.cut is not None:
            yield from shorten(end.cut)
        newest = examination.catalogue.newest_segment
        state = msgspec.structs.replace(state, segment_newest=newest, cut_from=0)
    is_short = survey.sizes[STATE] < STATE_BYTES
    if state != survey.state or is_short or any(flaw.file == STATE for flaw in survey.flaws):
        counter += 1
        yield from write_state(state, counter)
    return Opened(identity, state, counter, None if damaged else _resume(examination, settings, identity))


def _make(state: StoreState, examination: Examination) -> Work[Opened]:
    """A new store. Until its hard state is whole it counts as new again."""
    identity = Identity(ClusterId(state.cluster_id), NodeName(state.node_name))
    yield from perform(*(Delete(file) for file in examination.survey.leftovers))
    if STATE in examination.survey.sizes:
        yield from perform(Delete(STATE))
    yield from perform(Create(STATE), SyncDirectory())
    yield from write_state(state, 1)
    return Opened(identity, state, 1, None)


def _mend(tail: Tail, identity: Identity) -> Work[None]:
    """Rewrites slots and heads that are wrong, and syncs the file: part of it may never have been."""
    file, segment = tail.found.file, tail.segment
    effects: list[Effect] = [
        Write(file, TABLE_OFFSET + place * SLOT_BYTES, (slot,)) for place, slot in tail.scan.mended.items()
    ]
    if tail.found.head_damaged and segment.positions:
        opening = OPENING.pack(segment.first_index, 0, segment.chain_before)
        effects.append(Write(file, 0, (encode_identity(identity, segment.number, segment.slot_count),)))
        effects.append(Write(file, OPENING_SECTOR * SECTOR_BYTES, (encode_sector(opening, tail.found.seed),)))
        # What marks and seal told is known otherwise by now, or can be done without.
        sectors = MARK_SECTORS if tail.found.seal is not None else (*MARK_SECTORS, SEAL_SECTOR)
        effects += [Write(file, sector * SECTOR_BYTES, (BLANK,)) for sector in sectors]
    yield from perform(*effects, SyncFile(file))


def _resume(examination: Examination, settings: JournalSettings, identity: Identity) -> OpenSegment | None:
    """The last segment, if entries can be added to it."""
    end = examination.end
    assert end is not None
    if not end.tails:
        return None
    tail = end.tails[-1]
    segment, scan = tail.segment, tail.scan
    if segment.sealed or not segment.positions or segment is not examination.catalogue.last:
        return None
    table = bytearray(tail.table.data.ljust(len(segment.positions) * SLOT_BYTES, b"\0"))
    for place, slot in scan.mended.items():
        table[place * SLOT_BYTES : (place + 1) * SLOT_BYTES] = slot
    del table[len(segment.positions) * SLOT_BYTES :]
    place_in = OpenSegment(segment, tail.found.seed, settings.segment_bytes, 0)
    term_count = examination.terms.count(segment.first_index, segment.last_index)
    counter = max((mark.counter for mark in tail.found.marks), default=0)
    place_in.resume(bytes(table), examination.terms.last, term_count, counter)
    return place_in
