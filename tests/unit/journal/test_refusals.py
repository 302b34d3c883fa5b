"""Stores that cannot be used say why, and what to do."""

from __future__ import annotations

from zlib import crc32

import pytest

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.effects import FileName
from pandomq.journal.faults import ForeignFault, ReadOnlyFault, StoreFault, VersionFault
from pandomq.journal.hard_state import COPY_OFFSETS, HEAD
from pandomq.journal.journal import Journal
from pandomq.journal.limits import SECTOR_BYTES, JournalSettings
from pandomq.journal.segments.layout import encode_sector
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import CLUSTER, NODE, SMALL, Store

OTHER = ClusterId("11111111-2222-4333-8444-555555555555")


def used() -> Store:
    store = Store()
    store.open()
    store.append(b"one")
    store.save()
    store.snapshot()
    store.settle()
    store.disk.crash(Loss.ALL)
    return store


def open_as(store: Store, node_name: NodeName, cluster_id: ClusterId | None) -> None:
    store.journal = Journal(SMALL, node_name=node_name, cluster_id=cluster_id, new_cluster_id=OTHER)
    store.journal.open()
    store.pump()
    store.settle()


def test_a_store_knows_its_cluster() -> None:
    open_as(used(), NODE, None)
    open_as(used(), NODE, CLUSTER)
    with pytest.raises(ForeignFault, match=f"belongs to cluster {CLUSTER}, not to {OTHER}.*data directory of its own"):
        open_as(used(), NODE, OTHER)


def test_and_its_broker() -> None:
    with pytest.raises(
        ForeignFault, match=r"belongs to broker 'n1', but this broker is 'n2'\. Start it under its old name"
    ):
        open_as(used(), NodeName("n2"), None)


def test_a_new_store_takes_the_cluster_that_is_known() -> None:
    store = Store()
    store.disk.wipe()
    open_as(store, NODE, OTHER)
    store.recovered = None
    store.disk.crash(Loss.ALL)
    with pytest.raises(ForeignFault):
        open_as(store, NODE, CLUSTER)


def test_a_segment_of_another_cluster_is_refused() -> None:
    store, stranger = used(), Store()
    stranger.disk.wipe()
    open_as(stranger, NODE, OTHER)
    stranger.recovered = None
    stranger.append(b"strange")
    stranger.save()
    segment = stranger.files("segment")[0]
    content = stranger.disk.content(segment)
    store.disk._directory.files[segment].write(0, content)
    store.disk._directory.files[segment].sync()
    store.start()
    with pytest.raises(ForeignFault, match=segment):
        store.open()


@pytest.mark.parametrize("kind", ["segment", "state", "snapshot"])
def test_a_newer_format_is_refused(kind: str) -> None:
    store = used()
    file = store.files(kind)[0]
    content = bytearray(store.disk.content(file))
    if kind == "state":
        for offset in COPY_OFFSETS:
            magic, _, length, counter, _ = HEAD.unpack_from(content, offset)
            body = bytes(content[offset + HEAD.size : offset + HEAD.size + length])
            checksum = crc32(body, crc32(HEAD.pack(magic, 9, length, counter, 0)))
            content[offset : offset + HEAD.size] = HEAD.pack(magic, 9, length, counter, checksum)
    else:
        content[8] = 9
        content[:SECTOR_BYTES] = encode_sector(bytes(content[: SECTOR_BYTES - 4]))
    store.disk._directory.files[file].write(0, bytes(content))
    store.start()
    with pytest.raises(VersionFault, match=f"{file} has format version 9; .* Start the newer version"):
        store.open()


def test_a_read_only_disk_is_refused() -> None:
    store = used()
    store.disk.read_only = True
    store.start()
    with pytest.raises(ReadOnlyFault, match="must be able to write"):
        append_some(store)


def append_some(store: Store) -> None:
    store.open()
    store.append(b"two")
    store.save()


def test_the_error_for_corruption_names_the_place_and_the_tool() -> None:
    store = used()
    for offset in (0, 16 * 1024):
        store.disk.flip_bit(FileName("state"), (offset + 40) * 8)
    store.start()
    with pytest.raises(StoreFault, match=r"state is corrupt at offset 0: .*pandomq store repair"):
        store.open()


def test_settings_are_checked() -> None:
    for wrong in ({"segment_bytes": 100}, {"sparse_percent": 0}, {"fsync_interval_ms": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            JournalSettings(**wrong)  # type: ignore[arg-type]
