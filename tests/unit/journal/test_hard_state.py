"""Term and vote are never forgotten once they were spoken, and never half of one and half of another."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.hard_state import MEMBERSHIP_BYTES_MAX, HardState
from pandomq.journal.events import FlawKind, HardStateSaved
from pandomq.journal.faults import StoreFault
from pandomq.journal.hard_state import COPY_OFFSETS, HEAD, MAGIC, VERSION, StoreState, decode_copy, encode_copy
from pandomq.journal.names import STATE
from pandomq.kernel import crc32
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import CLUSTER, NODE, Store


def save(store: Store, state: HardState) -> None:
    store.journal.save_state(state)
    store.pump()


@given(
    seed=st.integers(0, 2**32),
    terms=st.lists(st.integers(1, 9), max_size=6).map(sorted),
    steps=st.lists(st.integers(0, 5), min_size=6, max_size=6),
    loss=st.sampled_from(Loss),
)
def test_a_saved_hard_state_survives_crashes(seed: int, terms: list[int], steps: list[int], loss: Loss) -> None:
    store = Store(seed)
    store.open()
    wanted = [HardState()]
    for term, count in zip(terms, steps, strict=False):
        # Large enough to be torn.
        wanted.append(HardState(term=term, vote=f"n{term}", membership=bytes([term]) * 2000))
        save(store, wanted[-1])
        for _ in range(count):
            store.step()
    spoken = len(store.heard(HardStateSaved))
    store.crash(loss)
    found = store.open().hard_state
    assert found in wanted[spoken:]
    store.crash(Loss.ALL)
    assert store.open().hard_state == found


def test_a_crash_while_a_longer_state_is_saved_looks_like_no_damage() -> None:
    """Content and size of a file reach the disk apart: the copy at its end must not depend on both."""
    for seed in range(60):
        store = Store(seed)
        store.open()
        for length in range(1, 4):
            save(store, HardState(term=length, vote="n" * length))
            for _ in range(seed % 7):
                store.step()
        store.crash(Loss.SOME)
        assert not store.open().flaws


def test_a_file_of_an_older_broker_gets_its_length() -> None:
    store = Store()
    store.open()
    save(store, HardState(term=3))
    store.settle()
    store.disk.crash(Loss.ALL)
    store.disk.truncate_file(STATE, COPY_OFFSETS[1] + 400)
    store.start()
    recovered = store.open()
    assert recovered.hard_state.term == 3 and not recovered.flaws
    assert store.disk.sizes()[STATE] == 2 * COPY_OFFSETS[1]


def test_one_damaged_copy_is_made_up_for() -> None:
    for offset in COPY_OFFSETS:
        store = Store()
        store.open()
        save(store, HardState(epoch=2, term=7, vote="n3", membership=b"m" * 100))
        store.settle()
        store.disk.crash(Loss.ALL)
        store.disk.flip_bit(STATE, (offset + 50) * 8)
        store.start()
        recovered = store.open()
        assert recovered.hard_state.term == 7
        assert [(flaw.kind, flaw.offset) for flaw in recovered.flaws] == [(FlawKind.STATE, offset)]
        store.crash(Loss.ALL)
        assert not store.open().flaws, "it was mended"


def test_two_damaged_copies_are_not() -> None:
    store = Store()
    store.open()
    store.append(b"one")
    store.save()
    store.disk.crash(Loss.ALL)
    for offset in COPY_OFFSETS:
        store.disk.flip_bit(STATE, (offset + 50) * 8)
    store.start()
    with pytest.raises(StoreFault, match="state is corrupt"):
        store.open()


def test_a_newer_state_takes_the_place_of_one_that_waits() -> None:
    store = Store()
    store.open()
    for term in range(1, 20):
        save(store, HardState(term=term))
    store.settle()
    assert len(store.heard(HardStateSaved)) == 19
    store.crash(Loss.ALL)
    assert store.open().hard_state.term == 19


def test_a_copy_fits_its_place() -> None:
    largest = StoreState(CLUSTER, "n" * 255, HardState(2**63, "e" * 36, 2**63, "v" * 255, b"m" * MEMBERSHIP_BYTES_MAX))
    assert decode_copy(encode_copy(largest, 2**63)) == (2**63, largest)
    with pytest.raises(ValueError, match="membership"):
        HardState(membership=bytes(MEMBERSHIP_BYTES_MAX + 1))


def test_a_newer_broker_may_have_added_fields() -> None:
    class Later(StoreState, frozen=True):
        more: int = 5

    copy = encode_copy(Later(CLUSTER, NODE), 3)
    assert decode_copy(copy) == (3, StoreState(CLUSTER, NODE))
    assert msgspec.msgpack.decode(copy[28:], type=Later).more == 5


def test_the_lead_of_the_clock_is_remembered_with_the_vote() -> None:
    store = Store()
    store.open()
    ticket = store.journal.store_identity.note_clock(86_400_000)
    save(store, HardState(term=3, vote="n2"))
    store.settle()
    assert ticket in [event.ticket for event in store.heard(HardStateSaved)]
    store.crash(Loss.ALL)
    assert store.open().hard_state.term == 3
    assert store.journal.store_identity.state.clock_ahead_ms == 86_400_000


def test_a_state_of_an_older_broker_has_no_clock_lead() -> None:
    older = {"cluster_id": CLUSTER, "node_name": NODE, "hard": HardState(term=3), "segment_newest": 2}
    content = msgspec.msgpack.encode(older)
    head = HEAD.pack(MAGIC, VERSION, len(content), 4, 0)
    copy = HEAD.pack(MAGIC, VERSION, len(content), 4, crc32(content, crc32(head))) + content
    state = StoreState(CLUSTER, NODE, HardState(term=3), segment_newest=2)
    assert decode_copy(copy) == (4, state)
    assert state.clock_ahead_ms == 0
