"""Changes entries of a store that no broker uses, with correct checksums and a correct chain, as no broker would.

It plants violations that an audit has to find. It parses and writes files in the journal's own layout, and uses no code
of the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.checksums import CHAIN_START, chain_next, entry_checksum
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.segments.layout import (
    ENTRY_BEGIN,
    ENTRY_END,
    ENTRY_HEAD,
    ENTRY_HEAD_BYTES,
    HEAD_BYTES,
    LAG_MAX,
    OPENING,
    OPENING_SECTOR,
    SEAL,
    SEAL_SECTOR,
    SLOT,
    SLOT_BYTES,
    TABLE_OFFSET,
    Identity,
    Slot,
    align,
    blank_sectors,
    body_offset,
    decode_identity,
    decode_opening,
    decode_seal,
    encode_identity,
    encode_sector,
    encode_slot,
    file_seed,
)
from pandomq.kernel import crc32
from pandomq.kernel.records import (
    ENTRY_START,
    VERSION,
    DequeueRecord,
    EnqueueRecord,
    Record,
    decode_entry,
    encode_command,
    encode_dequeue,
    encode_enqueue,
)
from pandomq.replica.protocol.entries import is_own

CLUSTER = ClusterId("6f2c6a0e-0a53-4d8e-9a53-0d5b7a1f9c11")
Entry = tuple[int, int, bytes]
"""Index, term, payload."""
Change = Callable[[int, int, bytes], tuple[int, bytes]]
"""Returns term and payload."""


def new_segment(path: Path, number: int, entries: list[Entry], node: str = "n1", *, sealed: bool = True) -> None:
    """Writes a segment that begins the log, or continues it at any index."""
    seed = file_seed(CLUSTER, number)
    head = bytearray(HEAD_BYTES)
    head[:SECTOR_BYTES] = encode_identity(Identity(CLUSTER, NodeName(node)), number, max(16, align(len(entries), 16)))
    opened = OPENING.pack(entries[0][0], entries[0][1], CHAIN_START)
    head[OPENING_SECTOR * SECTOR_BYTES : (OPENING_SECTOR + 1) * SECTOR_BYTES] = encode_sector(opened, seed)
    if sealed:
        seal = encode_sector(SEAL.pack(0, 0, 0, 0, 0, 0), seed)
        head[SEAL_SECTOR * SECTOR_BYTES : (SEAL_SECTOR + 1) * SECTOR_BYTES] = seal
    path.write_bytes(bytes(head))
    _write(path, entries, None, chained=True)


def segment_paths(store: Path) -> list[Path]:
    return sorted([*store.glob("segment-*.log"), *store.glob("retained-*.log")], key=lambda path: path.name[-16:])


def entries_of(path: Path) -> list[Entry]:
    data = path.read_bytes()
    identity = decode_identity(data[:SECTOR_BYTES])
    if identity is None:
        return []
    opening = decode_opening(_sector(data, OPENING_SECTOR), file_seed(identity.cluster_id, identity.number))
    if opening is None:
        return []
    entries: list[Entry] = []
    for place in range(identity.slot_count):
        row = SLOT.unpack_from(data, TABLE_OFFSET + place * SLOT_BYTES)
        if not any(row):
            break
        term, _, position, length = row[:4]
        begin = position + ENTRY_HEAD_BYTES
        entries.append((opening.first_index + place, term, data[begin : begin + length]))
    return entries


def all_entries(store: Path) -> list[Entry]:
    return [entry for path in segment_paths(store) for entry in entries_of(path)]


def change_entries(stores: Iterable[Path], change: Change, *, chained: bool = True) -> None:
    """Changes the entries in all of these stores. Without `chained` the chain stays as it was written."""
    for store in stores:
        chain: int | None = None
        for path in segment_paths(store):
            entries = [(index, *change(index, term, payload)) for index, term, payload in entries_of(path)]
            if entries:
                chain = _write(path, entries, chain, chained=chained)


def _write(path: Path, entries: list[Entry], chain: int | None, *, chained: bool) -> int:
    data = path.read_bytes()
    identity = decode_identity(data[:SECTOR_BYTES])
    assert identity is not None
    seed = file_seed(identity.cluster_id, identity.number)
    opening = decode_opening(_sector(data, OPENING_SECTOR), seed)
    assert opening is not None
    head = bytearray(data[:HEAD_BYTES].ljust(TABLE_OFFSET, b"\0"))
    before = opening.chain_before if chain is None or not chained else chain
    after = before
    table, body = bytearray(), bytearray()
    start = body_offset(identity.slot_count)
    for place, (index, term, payload) in enumerate(entries):
        checksum = entry_checksum(index, term, payload)
        after = chain_next(after, checksum)
        position = start + len(body)
        blank = blank_sectors(payload, position + ENTRY_HEAD_BYTES)
        table += encode_slot(Slot(term, checksum, position, len(payload), blank, LAG_MAX), seed, place)
        body += ENTRY_HEAD.pack(ENTRY_BEGIN, 0, len(payload), index, term, checksum, ENTRY_END) + payload
        body += b"\xff" * (align(len(body)) - len(body))
    if chained:
        opened = OPENING.pack(opening.first_index, opening.term_before, before)
        head[OPENING_SECTOR * SECTOR_BYTES : (OPENING_SECTOR + 1) * SECTOR_BYTES] = encode_sector(opened, seed)
    seal = decode_seal(_sector(data, SEAL_SECTOR), seed)
    if seal is not None:
        told = after if chained else seal.chain_after
        terms = len({term for _, term, _ in entries})
        sealed = SEAL.pack(entries[-1][0], start + len(body), entries[-1][1], told, crc32(bytes(table)), terms)
        head[SEAL_SECTOR * SECTOR_BYTES : (SEAL_SECTOR + 1) * SECTOR_BYTES] = encode_sector(sealed, seed)
    path.write_bytes(bytes(head) + bytes(table).ljust(start - TABLE_OFFSET, b"\0") + bytes(body))
    return after


def _sector(data: bytes, number: int) -> bytes:
    return data[number * SECTOR_BYTES : (number + 1) * SECTOR_BYTES]


# The content of an entry.


def records_of(payload: bytes) -> list[Record]:
    return [] if is_own(payload) or not payload else list(decode_entry(payload).records)


def with_records(payload: bytes, records: Iterable[Record]) -> bytes:
    """Returns the same entry with other records."""
    encoded = [_encode(record) for record in records]
    now_ms = decode_entry(payload).now_ms
    return ENTRY_START.pack(VERSION, now_ms, len(encoded)) + b"".join(encoded)


def _encode(record: Record) -> bytes:
    if isinstance(record, EnqueueRecord):
        return encode_enqueue(list(record.places), record.routing, record.header, record.body)
    if isinstance(record, DequeueRecord):
        return encode_dequeue(record.queue_id, record.sequence_first, record.count)
    return encode_command(record.command)
