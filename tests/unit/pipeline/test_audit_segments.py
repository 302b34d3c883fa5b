"""An audit reads the same entries from segments as the readable decoder, and only whole ones."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from pandomq.kernel.records import (
    ENTRY_START,
    VERSION,
    CommandRecord,
    DequeueRecord,
    EnqueueRecord,
    decode_entry,
    encode_command,
    encode_dequeue,
    encode_enqueue,
)
from pandomq.pipeline.audit.columns import decode, properties_of
from pandomq.pipeline.audit.segment_image import BadSegment, SegmentImage
from pandomq.properties import Properties, encode_header, read_property
from tests.support.log_editor import Entry, new_segment

OWN = b"\x81\x92\xa1t\xa2n2"


def message_header(random: Random) -> bytes:
    """Properties of any kind before the id, and sometimes no id."""
    return encode_header(
        random.randrange(100),
        Properties(
            content_type=random.choice([None, "text/plain"]),
            headers=random.choice([None, {"a": "b" * random.randrange(40)}]),
            delivery_mode=random.choice([None, 2]),
            priority=random.choice([None, 4]),
            correlation_id=random.choice([None, "c"]),
            expiration=random.choice([None, "1000"]),
            message_id=random.choice([None, "", f"m{random.random()}", "ü"]),
            app_id=random.choice([None, "app"]),
        ),
    )


def record(random: Random) -> bytes:
    kind = random.randrange(5)
    if kind == 0:
        return encode_dequeue(random.randrange(4), random.randrange(2**40), random.randrange(1, 9))
    if kind == 1:
        return encode_command(random.randbytes(random.randrange(30)))
    places = [(random.randrange(4), random.randrange(2**40)) for _ in range(random.choice([1, 1, 1, 3]))]
    body = random.randbytes(random.choice([0, 10, 700]))
    return encode_enqueue(places, b"\x01e\x03key", message_header(random), body)


def entries(random: Random, count: int, first: int = 1) -> list[Entry]:
    found = []
    for index in range(first, first + count):
        records = [record(random) for _ in range(random.choice([0, 1, 1, 2, 9]))]
        payload = ENTRY_START.pack(VERSION, 1000 + index, len(records)) + b"".join(records)
        found.append((index, 1 + index // 50, payload if random.random() > 0.05 else OWN))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_columns_agree_with_records(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    written = entries(random, 120)
    new_segment(tmp_path / "s", 1, written)
    image = SegmentImage(tmp_path / "s")
    assert image.index.tolist() == [index for index, _, _ in written]
    assert image.chain_after() == image.chain_sealed is not None
    columns = decode(image, np.arange(len(written)))
    places, exits, commands, ids, own = [], [], [], [], []
    for row, (_, _, payload) in enumerate(written):
        if payload == OWN:
            own.append((row, payload))
            continue
        for one in decode_entry(payload).records:
            if isinstance(one, EnqueueRecord):
                places += [(row, *place) for place in one.places]
                ids += [read_property(one.header, "message_id")] * len(one.places)
            elif isinstance(one, DequeueRecord):
                exits.append((row, one.queue_id, one.sequence_first, one.count))
            elif isinstance(one, CommandRecord):
                commands.append((row, one.command))
    assert (
        list(zip(columns.entry.tolist(), columns.queue_id.tolist(), columns.sequence.tolist(), strict=True)) == places
    )
    gone = (columns.exit_entry, columns.exit_queue, columns.exit_first, columns.exit_count)
    assert list(zip(*(column.tolist() for column in gone), strict=True)) == exits
    assert columns.commands == commands and columns.own == own and columns.unknown == []
    found = properties_of(image.views, columns.header_at, columns.header_size)
    texts = [
        None if size < 0 else image.views.octets[at : at + size].tobytes().decode()
        for at, size in zip(found.id_at.tolist(), found.id_size.tolist(), strict=True)
    ]
    assert texts == ids


def test_malformed_entries_are_reported_as_such(tmp_path: Path) -> None:
    good = ENTRY_START.pack(VERSION, 5, 1) + encode_dequeue(1, 2, 3)
    bad = [
        ENTRY_START.pack(9, 5, 0),
        ENTRY_START.pack(VERSION, 5, 2) + encode_dequeue(1, 2, 3),
        ENTRY_START.pack(VERSION, 5, 1) + encode_dequeue(1, 2, 3) + b"more",
        ENTRY_START.pack(VERSION, 5, 1) + b"\x07",
        ENTRY_START.pack(VERSION, 5, 1) + encode_enqueue([(1, 1)], b"", b"", b"body")[:-2],
        b"\x01",
    ]
    new_segment(tmp_path / "s", 1, [(place, 1, payload) for place, payload in enumerate([good, *bad, good], start=1)])
    image = SegmentImage(tmp_path / "s")
    columns = decode(image, np.arange(len(image.index)))
    assert sorted(columns.unknown) == [1, 2, 3, 4, 5, 6]
    assert columns.exit_entry.tolist() == [0, 7]
    assert columns.sequence.tolist() == []


def test_a_flipped_bit_costs_its_entry_and_no_other(tmp_path: Path) -> None:
    random = Random(1)
    written = [(index, 1, random.randbytes(300)) for index in range(1, 41)]
    new_segment(tmp_path / "s", 1, written)
    data = bytearray((tmp_path / "s").read_bytes())
    at = data.index(written[6][2]) + 100
    data[at] ^= 4
    (tmp_path / "s").write_bytes(data)
    image = SegmentImage(tmp_path / "s")
    assert [(damage.first_index, damage.last_index) for damage in image.damages] == [(7, 7)]
    assert image.index.tolist() == [index for index in range(1, 41) if index != 7]
    assert image.chain_after() is None


def test_a_file_that_is_being_written_has_an_end_and_no_damage(tmp_path: Path) -> None:
    written = [(index, 1, bytes([index]) * 900) for index in range(1, 21)]
    new_segment(tmp_path / "s", 1, written, sealed=False)
    whole = (tmp_path / "s").read_bytes()
    (tmp_path / "s").write_bytes(whole[:-1500])
    image = SegmentImage(tmp_path / "s")
    assert image.damages == [] and 1 <= image.last_index < 20
    assert image.index.tolist() == list(range(1, image.last_index + 1))
    # A finished one is not allowed to.
    new_segment(tmp_path / "t", 1, written)
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(whole[:-1500])
    damaged = SegmentImage(tmp_path / "t")
    assert damaged.last_index == 20 and damaged.damages[-1].last_index == 20


def test_files_without_entries(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    image = SegmentImage(tmp_path / "empty")
    assert image.last_index < image.first_index and not len(image.index)
    (tmp_path / "noise").write_bytes(Random(1).randbytes(20_000))
    with pytest.raises(BadSegment, match="head is damaged"):
        SegmentImage(tmp_path / "noise")
