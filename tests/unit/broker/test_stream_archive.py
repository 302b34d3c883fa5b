"""A stream that keeps what its archive has not got yet, up to a size: on every broker, through restarts."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.log.commands import DeletePolicy, PutPolicy
from pandomq.broker.streams.retention import ARCHIVE_WARNINGS_MAX
from pandomq.limits import STREAM_UNARCHIVED_BYTES_MAX
from tests.unit.broker.conversation import World
from tests.unit.broker.stream_scene import STREAM, chunk_bytes, declared, fill, revived, stream_of, stream_world

SMALL: dict[str, Any] = {"stream_max_segment_size_bytes": 500, "max_length_bytes": 2000}
WAITING: dict[str, Any] = {**SMALL, "retain_until_archived": "lake"}
BODY = b"x" * 90


def archived(world: World, end_offset: int, name: str = "lake") -> None:
    world.broker.streams.store_offset("/", "s", "guest", name, end_offset, lambda _: None, world.now_ms)
    world.run([])


def test_messages_that_are_not_archived_stay() -> None:
    world, places = stream_world()
    peer = declared(world, **WAITING)
    fill(peer, 200, BODY)
    stream = stream_of(world)
    assert stream.first_offset == 0
    archived(world, 50)
    # At once, and no more than whole segments.
    assert 40 < stream.first_offset <= 50
    archived(world, 190, "another")
    assert stream.first_offset <= 50
    archived(world, 200)
    # Archived rows are dropped as if there were no archive.
    plain = World()
    fill(declared(plain, **SMALL), 200, BODY)
    assert stream.first_offset == stream_of(plain).first_offset
    assert len(places.kept) == len(stream.index.rows)
    assert world.broker.streams.archive_warnings.take() == []


def test_age_waits_as_well() -> None:
    world = World()
    peer = declared(world, stream_max_segment_size_bytes=1, max_age="60s", retain_until_archived="lake")
    for _ in range(20):
        fill(peer, 1)
        world.now_ms += 10_000
    assert stream_of(world).first_offset == 0
    archived(world, 8)
    assert stream_of(world).first_offset == 8
    archived(world, 20)
    # Now all that is older than a minute goes.
    assert stream_of(world).first_offset == 15


def test_without_limits_everything_stays_archived_or_not() -> None:
    world = World()
    peer = declared(world, stream_max_segment_size_bytes=500, retain_until_archived="lake")
    fill(peer, 100, BODY)
    archived(world, 100)
    assert stream_of(world).first_offset == 0


@pytest.mark.proves("S4")
def test_an_archive_that_never_advances_is_bounded_and_logged() -> None:
    world = World()
    peer = declared(world, **WAITING, max_unarchived_bytes=10_000)
    stream, warnings = stream_of(world), world.broker.streams.archive_warnings
    while stream.index.size_bytes <= 5000:
        fill(peer, 1, BODY)
    (early,) = warnings.take()
    assert early.startswith("queue 's' in vhost '/' retains 5,")
    assert early.endswith(
        "bytes for 'lake', which has archived up to offset 0: above 10,000 bytes the oldest messages are deleted"
    )
    fill(peer, 100, BODY)
    assert stream.index.size_bytes <= 10_000
    assert stream.first_offset > 50
    lost = warnings.take()
    assert len(lost) > 3 and all("before 'lake' had archived them" in text for text in lost)
    assert lost[-1].startswith("queue 's' in vhost '/' deleted ")
    assert f"up to offset {stream.first_offset - 1}," in lost[-1]
    archived(world, stream.committed_end)
    assert stream.index.size_bytes <= 2000
    assert warnings.take() == []
    fill(peer, 25, BODY)
    assert len(warnings.take()) == 1, "it is news again"


def test_a_warning_gives_the_number_of_lost_messages() -> None:
    world = World()
    peer = declared(world, **WAITING, max_unarchived_bytes=3000)
    stream = stream_of(world)
    archived(world, 2)
    while not stream.first_offset:
        fill(peer, 1, BODY)
    *_, lost = world.broker.streams.archive_warnings.take()
    assert f"deleted {stream.first_offset - 2} messages, up to offset {stream.first_offset - 1}" in lost
    # A bound below the limit is none that counts.
    other = World()
    fill(declared(other, **WAITING, max_unarchived_bytes=1), 200, BODY)
    assert 0 < stream_of(other).index.size_bytes <= 2000
    assert len(other.broker.streams.archive_warnings.take()) <= ARCHIVE_WARNINGS_MAX


@pytest.mark.proves("R26")
def test_brokers_agree_and_restarts_change_nothing() -> None:
    world, places = stream_world()
    peer = declared(world, **WAITING, max_unarchived_bytes=6000)
    fill(peer, 70, BODY)
    archived(world, 30)
    restarted = revived(world, places)
    replayed = world.replayed()
    for other in (restarted, replayed):
        assert stream_of(other).stored_offsets == {"lake": 30}
        assert chunk_bytes(other) == chunk_bytes(world)
    before = len(world.entries)
    first = stream_of(world).first_offset
    fill(peer, 30, BODY)
    archived(world, 60)
    assert first < stream_of(world).first_offset
    for other in (restarted, replayed):
        for index, entry in enumerate(world.entries[before:], start=before + 1):
            other.broker.apply(index, 1, entry)
        assert chunk_bytes(other) == chunk_bytes(world)


def test_a_policy_sets_the_archive_as_well() -> None:
    world = World()
    peer = declared(world, **SMALL)
    definition = b'{"retain-until-archived": "lake", "max-unarchived-bytes": 50000}'
    assert world.administer(PutPolicy("/", "p", ".*", "streams", 0, definition)) is None
    settings = stream_of(world).queue.owner.settings
    assert (settings.archive, settings.unarchived_bytes_max) == ("lake", 50_000)
    fill(peer, 40, BODY)
    assert stream_of(world).first_offset == 0
    world.administer(DeletePolicy("/", "p"))
    assert stream_of(world).queue.owner.settings.unarchived_bytes_max == STREAM_UNARCHIVED_BYTES_MAX
    fill(peer, 10, BODY)
    assert stream_of(world).first_offset > 0


def test_of_two_the_argument_names_the_archive_and_the_smaller_bound_counts() -> None:
    world = World()
    declared(world, retain_until_archived="mine", max_unarchived_bytes=7000)
    definition = b'{"retain-until-archived": "policy", "max-unarchived-bytes": 9000}'
    world.administer(PutPolicy("/", "p", ".*", "streams", 0, definition))
    settings = stream_of(world).queue.owner.settings
    assert (settings.archive, settings.unarchived_bytes_max) == ("mine", 7000)


@pytest.mark.parametrize("value", ["", "x" * 256, 5])
def test_a_name_that_is_none_is_refused(value: Any) -> None:
    arguments = {**STREAM, "x-retain-until-archived": value}
    close = World().peer().refused(methods.QueueDeclare("s", durable=True, arguments=arguments))
    assert "invalid arg 'x-retain-until-archived' for queue 's' in vhost '/'" in close.reply_text


def test_a_stream_that_is_deleted_with_its_archive_ahead() -> None:
    world = World()
    peer = declared(world, **WAITING)
    fill(peer, 40, BODY)
    world.broker.streams.store_offset("/", "s", "guest", "lake", 30, lambda _: None, world.now_ms)
    peer.call(methods.QueueDelete("s"), expect=methods.QueueDeleteOk)
    assert world.broker.streams.find("/", "s") is None
    peer.declare("s", durable=True, arguments=STREAM)
    assert stream_of(world.replayed()).first_offset == 0
