"""A snapshot that comes from another broker takes the place of a store: whole, or not at all."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from pandomq.ids import LogIndex
from pandomq.journal.events import Emptied, Installed, InstallFailed, PartRead, PartTaken
from pandomq.journal.limits import SENDING_IDLE_MS
from pandomq.sim.files import Loss
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


def test_it_takes_the_place_of_what_was_there() -> None:
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
        # What is left to do at a start may be cut short as well.
        target.crash(random.choice(list(Loss)))
        for _ in range(random.randrange(12)):
            target.step()
    recovered = target.open()
    assert recovered.damage is None
    found = target.read_live()
    assert found == live or (found == before and not installed)


def test_what_is_damaged_changes_nothing() -> None:
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
    store.journal.arrivals.set_aside(7)
    store.pump()
    store.settle()
    assert store.heard(Emptied)
    store.crash(Loss.ALL)
    recovered = store.open()
    assert (recovered.last_index, recovered.snapshot_index) == (0, 0)
    assert store.journal.found_state is not None and store.journal.found_state.emptied
    assert {f"outlived-000007-{file}" for file in kept} <= set(store.disk.sizes())
