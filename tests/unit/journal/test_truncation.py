"""A tail that is cut off stays off, the log goes on in its place, and what was cut is kept if asked for."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.ids import LogIndex, Term
from pandomq.journal.effects import FileName
from pandomq.journal.events import Truncated
from pandomq.journal.segments.cutting import KIND_BYTES, KIND_PLACE, KIND_WHY
from pandomq.journal.segments.layout import ENTRY_HEAD, ENTRY_HEAD_BYTES
from pandomq.journal.segments.segment import Segment
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.snapshot import read_pieces
from pandomq.sim.disks.files import Loss
from tests.unit.journal.operations import truncate
from tests.unit.journal.store import Store


def follower(entries: int) -> Store:
    """A store whose entries no root has committed."""
    store = Store(early=False)
    store.open()
    store.journal.commit = lambda index: None  # type: ignore[method-assign]
    store.apply_up_to = lambda last_index: None  # type: ignore[method-assign]
    for number in range(entries):
        store.append(b"entry %d " % number * 30)
        store.save()
    return store


@given(entries=st.integers(1, 60), kept=st.integers(0, 60), after=st.integers(0, 30), steps=st.integers(0, 40))
def test_later_entries_take_the_place_of_those_that_were_cut(entries: int, kept: int, after: int, steps: int) -> None:
    store = follower(entries)
    truncate(store, min(kept, entries) + 1, keep_aside=False)
    for number in range(after):
        store.append(b"instead %d" % number, term=2)
        store.sync()
    for _ in range(steps):
        store.step()
    store.crash(Loss.SOME)
    store.check()


def test_terms_and_the_chain_go_back_as_well() -> None:
    store = follower(20)
    before = store.journal.chain_at(LogIndex(10))
    store.append(b"new term", term=7)
    store.save()
    truncate(store, 11, keep_aside=False)
    journal = store.journal
    assert (journal.last_index, journal.last_term) == (10, 1)
    assert journal.chain_at(LogIndex(10)) == before
    assert journal.term_at(LogIndex(11)) is None and journal.term_at(LogIndex(10)) == 1
    store.append(b"other", term=3)
    assert journal.term_at(LogIndex(11)) == 3
    store.save()
    assert [entry[1] for entry in store.read_all()] == [1] * 10 + [3]


def test_entries_that_are_cut_can_be_kept_aside() -> None:
    store = follower(40)
    cut = store.history[14:]
    truncate(store, 15, keep_aside=True)
    store.settle()
    aside = store.heard(Truncated)[-1].aside
    assert aside is not None and aside.startswith("aside-00000000000000000015")
    assert kept_in(store, aside) == [payload for _, payload in cut]
    store.crash(Loss.ALL)
    store.check()
    assert aside in store.disk.sizes()


def kept_in(store: Store, file: FileName) -> list[bytes]:
    """The entries of a side file, found by their heads."""
    content = store.disk.content(file)
    pieces: list[tuple[int, bytes]] = []
    window = ReadWindow(file, len(content), 4096)
    window.data = content

    def take(kind: int, data: bytes) -> bool:
        pieces.append((kind, data))
        return True

    reading = read_pieces(window, take)
    with pytest.raises(StopIteration):
        next(reading)
    assert pieces[0][0] == KIND_WHY and "entry 15" in msgspec.json.decode(pieces[0][1])["reason"]
    assert [msgspec.json.decode(data)["file"] for kind, data in pieces if kind == KIND_PLACE]
    found = []
    for data in [data for kind, data in pieces if kind == KIND_BYTES]:
        at = 0
        while at + ENTRY_HEAD_BYTES <= len(data):
            begin, _, length, *_ = ENTRY_HEAD.unpack_from(data, at)
            if begin != 0xB10C:
                at = -(-(at + 1) // 512) * 512 if at % 512 else at + 512
                continue
            found.append(data[at + ENTRY_HEAD_BYTES : at + ENTRY_HEAD_BYTES + length])
            at += ENTRY_HEAD_BYTES + length
            at += -at % 512 if ENTRY_HEAD.unpack_from(data.ljust(at + 32, b"\0"), at)[0] != 0xB10C else 0
    return found


def test_committed_entries_stay() -> None:
    store = Store()
    store.open()
    store.append(b"one")
    store.save()
    with pytest.raises(AssertionError, match="committed"):
        store.journal.truncate(LogIndex(1), keep_aside=False)


def test_a_damaged_log_can_be_cut_where_it_is_damaged() -> None:
    store = Store()
    store.open()
    for number in range(60):
        store.append(b"entry %d " % number * 30)
        store.save()
    segment = list(store.journal._catalogue)[1]
    assert isinstance(segment, Segment)
    bad = segment.first_index + 3
    store.disk.crash(Loss.ALL)
    store.disk.flip_bit(segment.file, (segment.positions[3] + 50) * 8)
    store.start()
    damage = store.open().damage
    assert damage is not None
    assert (damage.index, damage.known_index, damage.file) == (bad, 60, segment.file)
    assert [index for index, _, _ in store.replayed] == list(range(1, bad))
    with pytest.raises(AssertionError, match="truncated first"):
        store.journal.append(Term(1), b"not yet")
    store.journal.truncate(damage.index, keep_aside=True)
    store.pump()
    store.settle()
    aside = store.heard(Truncated)[-1].aside
    assert aside is not None and store.disk.sizes()[aside] > 10_000
    del store.history[bad - 1 :]
    store.durable = bad - 1
    store.append(b"goes on")
    store.save()
    store.crash(Loss.SOME)
    store.check()
    assert store.journal.last_index == bad


def test_a_cut_that_was_begun_is_finished_by_the_next_start() -> None:
    for steps in range(0, 60, 3):
        store = follower(40)
        truncate(store, 9, keep_aside=False)
        for _ in range(steps):
            store.step()
        store.crash(Loss.ALL)
        last = store.open().last_index
        assert last in (8, 40)
        store.crash(Loss.ALL)
        assert store.open().last_index == last
