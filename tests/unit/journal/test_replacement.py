"""A snapshot that comes from another broker takes the place of a store: whole, or not at all."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from pandomq.hard_state import HardState
from pandomq.ids import LogIndex
from pandomq.journal.events import Emptied, Installed, InstallFailed, PartRead, PartTaken
from pandomq.journal.faults import CorruptFault
from pandomq.journal.limits import SENDING_IDLE_MS
from pandomq.journal.names import page_file
from pandomq.journal.snapshots.snapshot_sender import KIND_PAGE, PART
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import Store


def filled(seed: int, count: int, letter: bytes) -> Store:
    """With messages in memory and in pages, a snapshot of them, and more in the log."""
    store = Store(seed)
    store.open()
    for number in range(count):
        store.append(letter * (number % 7 + 1) * 20, released=[number - 3] if number % 4 == 3 else [])
        if number % 10 == 9:
            store.page_out(6)
    store.save()
    store.snapshot()
    store.settle()
    store.append(letter * 9)
    store.save()
    return store


def ask(source: Store, name: str, number: int) -> PartRead:
    source.journal.sender.read(name, number)
    source.pump()
    source.settle()
    found: PartRead = source.heard(PartRead)[-1]
    return found


def all_parts(source: Store) -> tuple[list[PartRead], dict[int, bytes]]:
    """And the messages that are in the snapshot."""
    parts = [ask(source, "", 0)]
    while not parts[-1].last:
        parts.append(ask(source, parts[0].source, len(parts)))
    live = source.read_live()
    live.pop(len(source.history))
    return parts, live


def take(target: Store, number: int, data: bytes) -> None:
    target.journal.arrivals.take(number, data)
    target.pump()
    target.settle()
    assert len(target.heard(PartTaken)) == number + 1


def test_an_installed_snapshot_replaces_the_store() -> None:
    source, target = filled(1, 60, b"s"), filled(2, 90, b"t")
    parts, live = all_parts(source)
    assert len(parts) > 2, "pages travel, too"
    for number, part in enumerate(parts):
        take(target, number, part.data)
    target.journal.arrivals.install(parts[0].index, parts[0].term)
    target.pump()
    target.settle()
    assert target.heard(Installed)
    target.crash(Loss.NONE)
    recovered = target.open()
    assert (recovered.snapshot_index, recovered.last_index, recovered.flaws) == (60, 60, ())
    assert target.journal.chain_at(LogIndex(60)) == source.journal.chain_at(LogIndex(60))
    assert target.read_live() == live
    assert not [file for file in target.disk.sizes() if file.startswith("arriving")]
    target.history = source.history[:60]
    target.append(b"next")
    target.save()
    target.crash(Loss.ALL)
    target.check()


@pytest.mark.parametrize("receivers", [1, 2, 3])
@pytest.mark.parametrize("part_bytes", [64, 10_000])
def test_a_page_that_rotted_ends_the_broker_that_should_send_it(part_bytes: int, receivers: int) -> None:
    """The receiver would refuse the snapshot, and ask for it again, for ever. Several receivers may take turns."""
    source = filled(1, 60, b"s")
    source.settings = msgspec.structs.replace(source.settings, part_bytes=part_bytes)
    source.crash(Loss.NONE)
    source.open()
    parts, _ = all_parts(source)
    page = next(part for part in parts if part.data[0] == KIND_PAGE)
    _, number, offset = PART.unpack_from(page.data)
    source.disk.flip_bit(page_file(number), (offset + 8) * 8)
    with pytest.raises(CorruptFault, match="a page of messages is damaged"):
        _ = [ask(source, parts[0].source, place) for place in range(len(parts)) for _ in range(receivers)]


def test_a_snapshot_repairs_a_damaged_log_after_one_that_never_arrived() -> None:
    """The receiver was killed in the middle of the first one, and then its log rotted."""
    source, target = filled(1, 60, b"s"), filled(2, 90, b"t")
    parts, live = all_parts(source)
    take(target, 0, parts[0].data)
    # One more entry, so that the one before it cannot be a torn end.
    target.append(b"t")
    target.save()
    target.crash(Loss.NONE)
    segment = max(file for file in target.files("segment") if b"t" * 9 in target.disk.content(file))
    target.disk.flip_bit(segment, target.disk.content(segment).rindex(b"t" * 9) * 8)
    assert target.open().damage is not None
    assert not [file for file in target.disk.sizes() if file.startswith("arriving")]
    for number, part in enumerate(parts):
        target.journal.arrivals.take(number, part.data)
        target.pump()
        target.settle()
    target.journal.arrivals.install(parts[0].index, parts[0].term)
    target.pump()
    target.settle()
    assert target.heard(Installed)
    target.crash(Loss.NONE)
    assert target.open().damage is None
    assert target.read_live() == live


def test_all_entries_after_an_installed_snapshot_can_be_cut_off() -> None:
    """The log then ends with the snapshot, of which no segment holds the last entry."""
    source, target = filled(1, 60, b"s"), filled(2, 90, b"t")
    parts, _ = all_parts(source)
    for number, part in enumerate(parts):
        take(target, number, part.data)
    target.journal.arrivals.install(parts[0].index, parts[0].term)
    target.pump()
    target.settle()
    target.crash(Loss.NONE)
    target.open()
    target.history = source.history[:60]
    chain = target.journal.chain_at(LogIndex(60))
    target.append(b"never committed")
    # The journal has it, and nobody has called it committed.
    target.sync()
    target.journal.truncate(LogIndex(61), keep_aside=False)
    del target.history[60:]
    assert target.journal.chain_at(LogIndex(60)) == chain
    target.pump()
    target.settle()
    target.append(b"next", term=2)
    target.save()
    target.crash(Loss.ALL)
    target.check()


def test_the_log_that_was_there_is_kept_for_an_audit_if_so_wanted() -> None:
    source, target = filled(1, 60, b"s"), filled(2, 90, b"t")
    target.settings = msgspec.structs.replace(target.settings, retain_bytes=10**6)
    parts, _ = all_parts(source)
    for number, part in enumerate(parts):
        take(target, number, part.data)
    target.journal.arrivals.install(parts[0].index, parts[0].term)
    target.pump()
    target.settle()
    segments = [file for file in target.disk.sizes() if file.startswith("segment")]
    contents = [target.disk.content(file) for file in segments]
    target.crash(Loss.NONE)
    target.open()
    kept = [file for file in target.disk.sizes() if file.startswith("retained")]
    assert [target.disk.content(file) for file in kept] == contents


@pytest.mark.parametrize("seed", range(80))
def test_a_crash_leaves_the_old_store_or_the_new_one(seed: int) -> None:
    random = Random(seed)
    source, target = filled(1, 40, b"s"), filled(seed, 30, b"t")
    before = target.read_live()
    parts, live = all_parts(source)
    for number, part in enumerate(parts):
        target.journal.arrivals.take(number, part.data)
    target.journal.arrivals.install(parts[0].index, parts[0].term)
    target.pump()
    for _ in range(random.randrange(24)):
        target.step()
    installed = bool(target.heard(Installed))
    for _ in range(random.randrange(1, 4)):
        # The remaining work at a start may be interrupted, too.
        target.crash(random.choice(list(Loss)))
        for _ in range(random.randrange(12)):
            target.step()
    recovered = target.open()
    assert recovered.damage is None
    found = target.read_live()
    assert found == live or (found == before and not installed)


def test_a_damaged_snapshot_changes_nothing() -> None:
    source, target = filled(1, 40, b"s"), filled(2, 30, b"t")
    parts, _ = all_parts(source)
    for number, part in enumerate(parts):
        data = bytearray(part.data)
        if number == len(parts) - 1:
            data[-5] ^= 1
        take(target, number, bytes(data))
    target.journal.arrivals.install(parts[0].index, parts[0].term)
    target.pump()
    target.settle()
    assert "damaged" in target.heard(InstallFailed)[0].reason
    target.crash(Loss.NONE)
    target.check()


def test_a_snapshot_stays_while_it_is_read() -> None:
    source = filled(1, 40, b"s")
    first = ask(source, "", 0)
    for _ in range(4):
        source.append(b"more")
        source.save()
        source.snapshot()
        source.settle()
    assert ask(source, first.source, 1).data
    assert ask(source, "", 0).source == first.source
    assert source.journal.first_index <= first.index + 1, "the log after it is there"
    source.tick(SENDING_IDLE_MS + 1)
    source.settle()
    with pytest.raises(LookupError):
        source.journal.sender.read(first.source, 2)
    assert ask(source, "", 0).index > first.index


def test_a_store_that_is_set_aside_is_empty_afterwards() -> None:
    store = filled(1, 40, b"s")
    kept = {file for file in store.disk.sizes() if file.startswith(("segment", "snapshot", "pages"))}
    set_aside(store, b"nobody")
    recovered = store.open()
    assert (recovered.last_index, recovered.snapshot_index) == (0, 0)
    assert store.journal.found_state is not None and store.journal.found_state.emptied
    assert {f"outlived-000007-{file}" for file in kept} <= set(store.disk.sizes())


def set_aside(store: Store, begins_with: bytes) -> None:
    """After a vote."""
    store.journal.save_state(HardState(2, "epoch", 1_003, "n2", b"everybody"))
    store.journal.arrivals.set_aside(7, begins_with)
    store.pump()
    store.settle()
    assert store.heard(Emptied)
    store.crash(Loss.ALL)


def test_a_store_that_is_set_aside_keeps_epoch_term_and_vote() -> None:
    store = filled(1, 5, b"s")
    set_aside(store, b"nobody")
    assert store.open().hard_state == HardState(2, "epoch", 1_003, "n2", b"nobody")


def test_a_store_that_an_older_version_was_setting_aside_keeps_nothing() -> None:
    """It did not record with which members the empty store begins."""
    store = filled(1, 5, b"s")
    set_aside(store, b"")
    assert store.open().hard_state == HardState()
