"""Logs side by side: what must be the same, what may differ, and what nobody can tell."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from pandomq.hard_state import HardState
from pandomq.ids import LogIndex, NodeName
from pandomq.journal.effects import FileName
from pandomq.journal.hard_state import StoreState, encode_copy
from pandomq.journal.limits import STATE_COPY_BYTES
from pandomq.kernel.records import ENTRY_START, VERSION, encode_enqueue
from pandomq.pipeline.audit import spans
from pandomq.pipeline.audit.aside import BadAside, cut_entries, messages_in
from pandomq.pipeline.audit.chains import check_chains
from pandomq.pipeline.audit.findings import Findings, Promise, Verdict
from pandomq.pipeline.audit.logs import Logs, arrange, compare_blocks, compare_entries, count_compared, wanted_exactly
from pandomq.pipeline.audit.segment_scan import exact, scan_segment
from pandomq.pipeline.audit.stores import NoStore, has_grown, list_stores
from pandomq.properties import Properties, encode_header
from pandomq.replica.members.membership import Member
from pandomq.replica.record import first_state
from tests.support.log_editor import CLUSTER, Entry, change_entries, new_segment
from tests.unit.journal.store import Store

NAMES = ("n1", "n2", "n3")


def payload(index: int) -> bytes:
    return ENTRY_START.pack(VERSION, 1_000 + index, 0)


def make_store(directory: Path, name: str, entries: list[Entry], *, cuts: int = 1, epoch: int = 0) -> Path:
    """Its log divided into so many files."""
    store = directory / name
    store.mkdir(parents=True)
    voters = first_state([Member(NodeName(other)) for other in NAMES]).membership
    copy = encode_copy(StoreState(CLUSTER, name, hard=HardState(epoch=epoch, membership=voters)), 1)
    (store / "state").write_bytes(copy.ljust(STATE_COPY_BYTES, b"\0"))
    size = -(-len(entries) // cuts)
    for number, first in enumerate(range(0, len(entries), size), start=1):
        new_segment(store / f"segment-{number:012d}.log", number, entries[first : first + size], name)
    # Each file was begun as if it were the first one.
    change_entries([store], lambda index, term, payload: (term, payload))
    return store


def compared(*stores: Path) -> tuple[Logs, Findings]:
    findings = Findings()
    listed = list_stores(list(stores))
    logs = arrange(listed, [scan_segment(place) for files in listed for place in files.places], findings)
    compare_blocks(logs)
    compare_entries(logs, [exact(*wanted) for wanted in wanted_exactly(logs, findings)], findings)
    check_chains(logs, findings)
    count_compared(logs, findings)
    return logs, findings


def log_of(count: int, term: int = 1) -> list[Entry]:
    return [(index, term, payload(index)) for index in range(1, count + 1)]


def test_equal_logs_in_different_files_are_proven_equal(tmp_path: Path) -> None:
    entries, cuts = log_of(3000), dict(zip(NAMES, (1, 3, 7), strict=True))
    logs, findings = compared(*(make_store(tmp_path, name, entries, cuts=cuts[name]) for name in NAMES))
    statement = findings.of(Promise.REPLICAS)
    assert statement.verdict is Verdict.PROVEN and statement.judged == 3000
    assert not logs.differing and logs.enough()
    pieces = logs.plan()
    assert spans.joined(span for piece in pieces for span in piece.spans) == [(1, 3000)]
    assert {piece.place.broker for piece in pieces} == {"n3"}, "each entry is decoded once"


def test_a_shorter_log_is_no_violation(tmp_path: Path) -> None:
    stores = [make_store(tmp_path, name, log_of(count)) for name, count in zip(NAMES, (1500, 1500, 900), strict=True)]
    _, findings = compared(*stores)
    assert findings.of(Promise.REPLICAS).verdict is Verdict.PROVEN


def test_entries_that_the_root_alone_has_are_not_committed_yet(tmp_path: Path) -> None:
    stores = [make_store(tmp_path, name, log_of(count)) for name, count in zip(NAMES, (105, 100, 100), strict=True)]
    _, findings = compared(*stores)
    assert findings.of(Promise.REPLICAS).verdict is Verdict.PROVEN


def test_one_index_and_term_is_one_entry(tmp_path: Path) -> None:
    stores = [make_store(tmp_path, name, log_of(2500), cuts=2) for name in NAMES]
    change_entries(stores[1:2], lambda index, term, data: (term, payload(7) if index == 1100 else data))
    _, findings = compared(*stores)
    (violation,) = findings.of(Promise.REPLICAS).violations
    assert violation.index == 1100 and violation.brokers == "n3, n1; n2"


def test_an_entry_that_the_highest_broker_alone_has_otherwise_is_one_violation(tmp_path: Path) -> None:
    """Which broker is the highest depends on the last election, e.g. at a shutdown; what is found does not."""
    stores = [make_store(tmp_path, name, log_of(100 + (name == "n1")), cuts=2) for name in NAMES]
    change_entries(stores[:1], lambda index, term, data: (term, payload(7) if index == 40 else data))
    logs, findings = compared(*stores)
    assert logs.brokers[0].name == "n1"
    (violation,) = findings.of(Promise.REPLICAS).violations
    assert violation.index == 40 and violation.brokers == "n1; n3, n2"
    assert findings.of(Promise.REPLICAS).count == 1


def test_logs_that_agree_agree_on_all_that_came_before(tmp_path: Path) -> None:
    stores = [make_store(tmp_path, name, log_of(100, term=3)) for name in NAMES]
    change_entries(stores[:1], lambda index, term, data: (2 if index == 50 else term, data))
    _, findings = compared(*stores)
    assert [one.index for one in findings.of(Promise.REPLICAS).violations] == [50]


def test_an_end_in_an_older_term_was_never_committed(tmp_path: Path) -> None:
    common = log_of(100)
    old = make_store(tmp_path, "n1", [*common, *((index, 1, payload(index)) for index in range(101, 131))])
    new = [*common, *((index, 2, payload(-index % 1000)) for index in range(101, 111))]
    logs, findings = compared(old, *(make_store(tmp_path, name, new) for name in NAMES[1:]))
    assert findings.of(Promise.REPLICAS).verdict is Verdict.PROVEN
    (piece,) = logs.surplus()
    assert piece.place.broker == "n1" and piece.spans == ((101, 130),)
    assert logs.last_index == 110


def test_other_brokers_supply_the_entries_that_the_highest_has_lost(tmp_path: Path) -> None:
    stores = [make_store(tmp_path, name, log_of(300), cuts=3) for name in NAMES]
    for store in stores[1:]:
        (store / "segment-000000000001.log").unlink()
    (stores[0] / "segment-000000000002.log").unlink()
    logs, findings = compared(*stores)
    pieces = logs.plan()
    assert logs.gaps(pieces) == []
    assert {piece.place.broker for piece in pieces} == {"n3", "n1"}
    statement = findings.of(Promise.REPLICAS)
    assert statement.verdict is Verdict.IN_PART
    assert any("1 to 100 can be read on only one broker" in reason for reason in statement.reasons)
    (stores[0] / "segment-000000000001.log").unlink()
    logs, _ = compared(*stores)
    assert logs.gaps(logs.plan()) == [(1, 100)]


def test_too_few_logs(tmp_path: Path) -> None:
    logs, _ = compared(make_store(tmp_path, "n1", log_of(10)))
    assert not logs.enough()
    logs, _ = compared(tmp_path / "n1", make_store(tmp_path, "n2", log_of(10)))
    assert logs.enough()


def test_stores_that_do_not_belong_together(tmp_path: Path) -> None:
    store = make_store(tmp_path, "n1", log_of(3))
    with pytest.raises(NoStore, match="not a directory"):
        list_stores([tmp_path / "nowhere"])
    (store / "state").write_bytes(b"\0" * 100)
    with pytest.raises(NoStore, match="damaged"):
        list_stores([store])


def test_a_log_that_grows_is_seen(tmp_path: Path) -> None:
    store = make_store(tmp_path, "n1", log_of(10), cuts=2)

    def grown() -> bool:
        return any(map(has_grown, listed))

    listed = list_stores([store])
    assert not grown()
    path = store / "segment-000000000002.log"
    path.write_bytes(path.read_bytes() + b"more")
    assert grown()
    listed = list_stores([store])
    # Files are put aside and deleted; nothing was written by that.
    path.with_name("segment-000000000001.log").rename(store / "retained-000000000001.log")
    assert not grown()
    (store / "segment-000000000003.log").write_bytes(b"")
    assert grown()


def test_spans() -> None:
    assert spans.joined([(5, 9), (1, 4), (20, 10), (12, 12)]) == [(1, 9), (12, 12)]
    assert spans.without([(1, 10), (20, 30)], [(3, 4), (9, 21)]) == [(1, 2), (5, 8), (22, 30)]
    assert spans.size([(1, 10), (20, 20)]) == 11
    assert spans.words([(1, 1), (3, 5)]) == "1, 3 to 5"
    random = Random(1)
    for _ in range(200):
        ones = [(first, first + random.randrange(5)) for first in random.sample(range(60), 6)]
        twos = [(first, first + random.randrange(5)) for first in random.sample(range(60), 6)]
        left = {
            at for first, last in spans.without(spans.joined(ones), spans.joined(twos)) for at in range(first, last + 1)
        }
        here = {at for first, last in ones for at in range(first, last + 1)}
        assert left == here - {at for first, last in twos for at in range(first, last + 1)}


# Entries that a forced promotion cut off.


def test_entries_kept_aside_are_read_again(tmp_path: Path) -> None:
    store = Store()
    store.open()
    for number in range(60):
        store.append(b"%d" % number * 30)
        if number % 3 == 0:
            store.save()
    store.save()
    history = [data for _, data in store.history]
    # Committed entries stay: the owner has not received the new end yet.
    store.journal._commit_index = 39
    store.journal.truncate(LogIndex(40), keep_aside=True)
    store.pump()
    store.settle()
    (name,) = [file for file in store.disk.sizes() if file.startswith("aside")]
    path = tmp_path / "aside"
    path.write_bytes(store.disk.content(FileName(name)))
    assert list(cut_entries(path)) == [(index, history[index - 1]) for index in range(40, 61)]
    path.write_bytes(b"\0" * 600)
    with pytest.raises(BadAside):
        list(cut_entries(path))


def test_messages_of_an_entry() -> None:
    header = encode_header(4, Properties(message_id="m1"))
    records = [encode_enqueue([(1, 5), (2, 6)], b"", header, b"body"), encode_enqueue([(1, 6)], b"", b"", b"")]
    entry = ENTRY_START.pack(VERSION, 1, 2) + b"".join(records)
    assert list(messages_in(entry)) == [(1, 5, "m1"), (2, 6, "m1"), (1, 6, "")]
    assert list(messages_in(b"\x81own")) == [] and list(messages_in(b"\x01")) == []
