"""Streams of a broker that stops, or is killed, and starts again; and of one that keeps only their ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from .restarts import RestartingBroker, ended
from .stream_reader import StreamReader, declare, fill, fill_confirmed


@pytest.fixture
def restarting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestartingBroker]:
    """With a snapshot for each megabyte of the log."""
    for name in ("SEGMENT", "SNAPSHOT"):
        monkeypatch.setenv(f"PANDOMQ_LOG_{name}_BYTES", "1MiB")
    with ended(RestartingBroker(tmp_path)) as broker:
        broker.start()
        yield broker


@pytest.mark.parametrize("cleanly", [True, False])
def test_a_stream_comes_back(restarting: RestartingBroker, cleanly: bool) -> None:
    channel = restarting.connect().channel()
    declare(channel, "s")
    fill_confirmed(channel, "s", 0, 50)
    reader = StreamReader(restarting.channel(), "s")
    assert reader.read_to(50) == list(range(50))
    restarting.restart(cleanly=cleanly)
    channel = restarting.connect().channel()
    fill_confirmed(channel, "s", 50, 60)
    reader = StreamReader(restarting.channel(), "s")
    assert reader.read_to(60) == reader.numbers == list(range(60))


@pytest.mark.timeout(120)
def test_chunks_on_the_disk_outlive_crashes(restarting: RestartingBroker) -> None:
    chance = Random(5)
    channel = restarting.connect().channel()
    declare(channel, "s", **{"x-stream-max-segment-size-bytes": 100_000})
    end = 0
    for _ in range(3):
        fill(channel, "s", end, end + 800, 2000)
        end += 800
        restarting.restart(cleanly=False)
        channel = restarting.connect().channel()
        first = chance.randrange(end)
        reader = StreamReader(restarting.channel(), "s", first)
        assert reader.read_to(end) == reader.numbers == list(range(first, end))
    reader = StreamReader(restarting.channel(), "s", "first")
    assert reader.read_to(end) == list(range(end))
    assert list(restarting.data.rglob("pages-*")), "some of it was read from there"


@pytest.mark.timeout(120)
def test_only_the_end_is_kept_under_load(restarting: RestartingBroker) -> None:
    channel = restarting.connect().channel()
    declare(channel, "s", **{"x-max-length-bytes": 3_000_000, "x-stream-max-segment-size-bytes": 100_000})
    reader = StreamReader(restarting.channel(), "s", "next", prefetch=1000)
    for first in range(0, 4000, 500):
        fill(channel, "s", first, first + 500, 2000)
        reader.wait_for(first + 500)
    assert reader.numbers == list(range(4000))
    kept = channel.queue_declare("s", passive=True).method.message_count
    assert 1200 < kept < 1600
    channel = restarting.restart(cleanly=True)
    assert channel.queue_declare("s", passive=True).method.message_count == kept
    late = StreamReader(restarting.channel(), "s", "first")
    assert late.read_to(4000) == list(range(4000 - kept, 4000))
