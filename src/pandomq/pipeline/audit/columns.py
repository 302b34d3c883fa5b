"""The messages in many entries, as columns: which entered which queue, and which left.

All entries are walked through in parallel, a record of each at a time, in the form of `kernel.records`. So numpy does
the work, not Python; entries with many records are as fast, as long as there are several of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pandomq.kernel.constants import RECORD_COMMAND, RECORD_DEQUEUE, RECORD_ENQUEUE
from pandomq.kernel.records import COMMAND_START, CONTENT_SIZES, DEQUEUE, ENTRY_START, PLACE, VERSION
from pandomq.pipeline.audit.limits import COMMAND_BYTES_MAX
from pandomq.pipeline.audit.segment_image import SegmentImage
from pandomq.pipeline.audit.views import Bits, ByteViews, Numbers
from pandomq.replica.protocol.entries import OWN_FIRST

NO_NUMBERS = np.zeros(0, np.int64)
_EXPIRATION, _MESSAGE_ID = 1 << 8, 1 << 7
_SHORT_BEFORE_HEADERS = (1 << 15, 1 << 14)
_HEADERS, _DELIVERY_MODE, _PRIORITY = 1 << 13, 1 << 12, 1 << 11
_SHORT_AFTER_PRIORITY = (1 << 10, 1 << 9, _EXPIRATION)
_FLAGS_OFFSET, _PROPERTIES_OFFSET = 12, 14


@dataclass
class Columns:
    """`entry` is a row of the image. Places and exits are in the order of the log."""

    now_ms: Numbers
    """Of each row of the image; 0 for entries that are not a broker's."""
    entry: Numbers = field(default_factory=lambda: NO_NUMBERS)
    queue_id: Numbers = field(default_factory=lambda: NO_NUMBERS)
    sequence: Numbers = field(default_factory=lambda: NO_NUMBERS)
    header_at: Numbers = field(default_factory=lambda: NO_NUMBERS)
    header_size: Numbers = field(default_factory=lambda: NO_NUMBERS)
    routing_size: Numbers = field(default_factory=lambda: NO_NUMBERS)
    """The routing is directly before the header."""
    exit_entry: Numbers = field(default_factory=lambda: NO_NUMBERS)
    exit_queue: Numbers = field(default_factory=lambda: NO_NUMBERS)
    exit_first: Numbers = field(default_factory=lambda: NO_NUMBERS)
    exit_count: Numbers = field(default_factory=lambda: NO_NUMBERS)
    messages: int = 0
    """Records of messages, each for one queue or several."""
    commands: list[tuple[int, bytes]] = field(default_factory=list)
    own: list[tuple[int, bytes]] = field(default_factory=list)
    """Entries of the replica."""
    unknown: list[int] = field(default_factory=list)
    """Rows of entries that this version does not know."""


def decode(image: SegmentImage, rows: Numbers) -> Columns:
    """Decodes these rows of the image."""
    columns = Columns(np.zeros(len(image.index), np.int64))
    first = image.views.octets_at(image.at[rows])
    own = (first >= OWN_FIRST) & (image.length[rows] > 0)
    columns.own = [(row, image.payload(row)) for row in rows[own].tolist()]
    ours = rows[~own]
    known = (first[~own] == VERSION) & (image.length[ours] >= ENTRY_START.size)
    columns.unknown = ours[~known].tolist()
    ours = ours[known]
    columns.now_ms[ours] = image.views.numbers("<u8", image.at[ours] + 1)
    _Walk(image, ours, columns).run()
    return columns


class _Walk:
    def __init__(self, image: SegmentImage, rows: Numbers, columns: Columns) -> None:
        self._views = image.views
        self._columns = columns
        self._rows = rows
        self._ends = image.at[rows] + image.length[rows]
        self._cursors = image.at[rows] + ENTRY_START.size
        self._left = image.views.numbers("<u4", image.at[rows] + 9)
        self._places: list[tuple[Numbers, ...]] = []
        self._exits: list[tuple[Numbers, ...]] = []

    def run(self) -> None:
        active = np.flatnonzero(self._left > 0)
        step = 0
        bad: list[int] = []
        while len(active):
            kinds = self._views.octets_at(self._cursors[active])
            self._enqueues(active[kinds == RECORD_ENQUEUE], step)
            self._dequeues(active[kinds == RECORD_DEQUEUE], step)
            self._commands(active[kinds == RECORD_COMMAND])
            self._left[active] -= 1
            strange = (kinds < RECORD_ENQUEUE) | (kinds > RECORD_COMMAND) | (self._cursors[active] > self._ends[active])
            if strange.any():
                bad += active[strange].tolist()
                active = active[~strange]
            active = active[self._left[active] > 0]
            step += 1
        ended = self._cursors == self._ends
        ended[bad] = False
        self._columns.unknown += self._rows[~ended].tolist()
        self._collect(ended)

    def _enqueues(self, at: Numbers, step: int) -> None:
        if not len(at):
            return
        views, cursors = self._views, self._cursors[at]
        counts = views.numbers("<u2", cursors + 1)
        sizes_at = np.minimum(cursors + 3 + PLACE.size * counts, views.size)
        routing, header, body = (views.numbers("<u4", sizes_at + offset) for offset in (0, 4, 8))
        content_at = sizes_at + CONTENT_SIZES.size
        after = content_at + routing + header + body
        fits = after <= self._ends[at]
        # The cursor detects a record that does not fit; it is not evaluated.
        self._cursors[at] = after
        at, counts, cursors = at[fits], counts[fits], cursors[fits]
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        place_at = np.repeat(cursors + 3, counts) + PLACE.size * within
        self._columns.messages += len(at)
        self._places.append(
            (
                np.repeat(at, counts),
                np.full(len(place_at), step, np.int64),
                views.numbers("<u8", place_at),
                views.numbers("<u8", place_at + 8),
                np.repeat((content_at + routing)[fits], counts),
                np.repeat(header[fits], counts),
                np.repeat(routing[fits], counts),
            )
        )

    def _dequeues(self, at: Numbers, step: int) -> None:
        if not len(at):
            return
        cursors = self._cursors[at]
        self._cursors[at] = cursors + DEQUEUE.size
        fits = self._cursors[at] <= self._ends[at]
        at, cursors = at[fits], cursors[fits]
        views = self._views
        self._exits.append(
            (
                at,
                np.full(len(at), step, np.int64),
                views.numbers("<u8", cursors + 1),
                views.numbers("<u8", cursors + 9),
                views.numbers("<u4", cursors + 17),
            )
        )

    def _commands(self, at: Numbers) -> None:
        if not len(at):
            return
        begins = self._cursors[at] + COMMAND_START.size
        sizes = self._views.numbers("<u4", self._cursors[at] + 1)
        self._cursors[at] = begins + sizes
        for place, begin, size in zip(at.tolist(), begins.tolist(), sizes.tolist(), strict=True):
            if begin + size <= self._ends[place] and size <= COMMAND_BYTES_MAX:
                command = self._views.octets[begin : begin + size].tobytes()
                self._columns.commands.append((int(self._rows[place]), command))

    def _collect(self, ended: Bits) -> None:
        columns = self._columns
        if self._places:
            at, _, *rest = _in_order(self._places, ended)
            columns.entry = self._rows[at]
            columns.queue_id, columns.sequence, *rest = rest
            columns.header_at, columns.header_size, columns.routing_size = rest
        if self._exits:
            at, _, *rest = _in_order(self._exits, ended)
            columns.exit_entry = self._rows[at]
            columns.exit_queue, columns.exit_first, columns.exit_count = rest
        columns.commands.sort(key=lambda command: command[0])


def _in_order(parts: list[tuple[Numbers, ...]], ended: Bits) -> list[Numbers]:
    """All of them by entry and record, without those of unknown entries."""
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((joined[1], joined[0]))
    order = order[ended[joined[0][order]]]
    return [column[order] for column in joined]


@dataclass(frozen=True)
class PropertyColumns:
    """Properties of messages; unreadable headers have none."""

    id_at: Numbers
    id_size: Numbers
    """-1: it has no id."""
    expires: Bits


def properties_of(views: ByteViews, header_at: Numbers, header_size: Numbers) -> PropertyColumns:
    """Parses the content headers up to the message id, all at once."""
    end = header_at + header_size
    flags = np.where(header_size >= _PROPERTIES_OFFSET, views.numbers(">u2", header_at + _FLAGS_OFFSET), 0)
    at = header_at + _PROPERTIES_OFFSET

    def clipped() -> Numbers:
        return np.minimum(at, views.size)

    for flag in _SHORT_BEFORE_HEADERS:
        at = at + np.where(flags & flag, 1 + views.octets_at(clipped()), 0)
    at = at + np.where(flags & _HEADERS, 4 + views.numbers(">u4", clipped()), 0)
    for flag in (_DELIVERY_MODE, _PRIORITY):
        at = at + np.where(flags & flag, 1, 0)
    for flag in _SHORT_AFTER_PRIORITY:
        at = at + np.where(flags & flag, 1 + views.octets_at(clipped()), 0)
    sizes = views.octets_at(clipped())
    has_id = ((flags & _MESSAGE_ID) > 0) & (at + 1 + sizes <= end)
    return PropertyColumns(at + 1, np.where(has_id, sizes, -1), (flags & _EXPIRATION) > 0)
