"""The demo's account reports errors, and its report shows them."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from pandomq.pipeline.plots import TimelineSpan
from tools.demo.account import Account, Archived
from tools.demo.counters import Counters
from tools.demo.grove import MemberRow, Sight
from tools.demo.report import page
from tools.demo.story import Story
from tools.demo.words import Heard, Progress, Published, Read, Seen

FIRST, SECOND = (0, 1), (0, 2)


def published(count: int, unconfirmed: tuple[int, ...] = ()) -> dict[int, Published]:
    """Each is published a second after the previous one."""
    return {0: Published(0, count, unconfirmed, 0, tuple(1.0 + number for number in range(count)))}


@pytest.mark.parametrize(
    ("unconfirmed", "seen", "lost", "redelivered", "unmarked", "balances"),
    [
        ((), [{FIRST: b"\x01\x01\x01"}], 0, 0, 0, True),
        ((), [{FIRST: b"\x01\x00\x01\x00"}, {FIRST: b"\x00\x01"}], 0, 0, 0, True),
        # The second attempt of a publisher without a confirm is no redelivery.
        ((), [{FIRST: b"\x01\x01\x01", SECOND: b"\x00\x01"}], 0, 0, 0, True),
        ((), [{FIRST: b"\x01\x00\x01"}], 1, 0, 0, False),
        ((1,), [{FIRST: b"\x01\x00\x01"}], 0, 0, 0, False),
        # Two consumers received it, both without the mark: an error.
        ((), [{FIRST: b"\x01\x01\x01"}, {FIRST: b"\x00\x00\x01"}], 0, 1, 1, False),
    ],
)
def test_lost_and_doubled(
    unconfirmed: tuple[int, ...],
    seen: list[dict[tuple[int, int], bytes]],
    lost: int,
    redelivered: int,
    unmarked: int,
    balances: bool,
) -> None:
    account = Account(published=published(3, unconfirmed), seen=[Seen(times, times) for times in seen])
    assert (account.lost, account.redelivered, account.unmarked) == (lost, redelivered, unmarked)
    assert account.balances() is balances


def test_a_marked_redelivery_is_fine() -> None:
    account = Account(published=published(2), seen=[Seen({FIRST: b"\x02\x01"}, {FIRST: b"\x01\x01"})])
    assert (account.redelivered, account.unmarked) == (1, 0)
    assert account.balances()


@pytest.mark.parametrize(
    ("heard", "doubled", "unheard"),
    [
        (Heard("n1", True, 0, {FIRST: b"\x01\x00\x00\x01"}), 0, 0),
        # It was declared later.
        (Heard("n1", True, 3.5, {FIRST: b"\x00\x00\x00\x01"}), 0, 0),
        (Heard("n1", True, 0, {FIRST: b"\x01"}), 0, 1),
        # It received nothing at all, though it existed: no message shows that it should have received one.
        (Heard("n1", True, 0, {}), 0, 2),
        (Heard("n1", True, 3.5, {}), 0, 1),
        # It was declared after all messages were published.
        (Heard("n1", True, 9, {}), 0, 0),
        # Its broker was lost, and with it the messages under way.
        (Heard("n1", False, 0, {FIRST: b"\x01"}), 0, 0),
        (Heard("n1", False, 0, {FIRST: b"\x02"}), 1, 0),
        # The publisher had no confirm, and published the message again: that is another copy.
        (Heard("n1", True, 0, {FIRST: b"\x01\x00\x00\x01", SECOND: b"\x00\x00\x00\x01"}), 0, 0),
    ],
)
def test_subscribers_receive_everything_once(heard: Heard, doubled: int, unheard: int) -> None:
    account = Account(published=published(4), seen=[Seen({FIRST: bytes([1] * 4)}, {})], heard=[heard])
    assert (account.doubled, account.unheard) == (doubled, unheard)
    assert account.balances() is (doubled == unheard == 0)


@pytest.mark.parametrize(
    ("times", "out_of_order", "wrong"), [(b"\x01\x01\x01", 0, 0), (b"\x01\x00\x01", 0, 1), (b"\x01\x01\x01", 2, 2)]
)
def test_the_stream_and_the_lake_have_everything(times: bytes, out_of_order: int, wrong: int) -> None:
    all_seen = Account(published=published(3), seen=[Seen({FIRST: b"\x01\x01\x01"}, {})])
    read = replace(all_seen, read=[Read("n4", 3, out_of_order, {FIRST: times})])
    archived = replace(all_seen, archived=Archived(3, out_of_order, {FIRST: times}))
    assert (read.unread, archived.unarchived) == (wrong, wrong)
    assert read.balances() is archived.balances() is (wrong == 0)


def test_the_longest_pause_of_all_publishers_counts() -> None:
    counters = Counters()
    for pause_s in (0.1, 0.4, 0.2):
        counters.add(Progress(pause_s=pause_s))
    assert counters.longest_pause_s == 0.4


def seen_as(root: str, roles: dict[str, str], term: int, at_ms: int) -> Sight:
    rows = [MemberRow(name, "", "", role, "", "", "") for name, role in roles.items()]
    return Sight(root, term, rows, frozenset(), [{"term": term, "root": root, "at_ms": at_ms, "missing_ms": 0}])


def test_the_events_of_the_demo_follow_the_views_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(began=0.0, began_at=1000.0)
    for now_s, sight in (
        (1.0, seen_as("n1", {"n1": "root", "n2": "backup"}, 1, 1_000_500)),
        (2.0, seen_as("n1", {"n1": "root", "n2": "backup"}, 1, 1_000_500)),
        (3.0, seen_as("n2", {"n1": "dead", "n2": "root"}, 2, 1_002_700)),
        # Another broker learned of it earlier.
        (4.0, seen_as("n2", {"n1": "backup", "n2": "root"}, 2, 1_002_600)),
    ):
        monkeypatch.setattr("time.monotonic", lambda now_s=now_s: now_s)
        story.look(sight)
    monkeypatch.undo()
    assert [(lane.name, lane.spans) for lane in story.lanes()] == [
        ("n1", [TimelineSpan(1, 2, "root"), TimelineSpan(2, 3, "dead"), TimelineSpan(3, 4, "backup")]),
        ("n2", [TimelineSpan(1, 2, "backup"), TimelineSpan(2, 4, "root")]),
    ]
    story.killed_s = 2.2
    assert [(round(mark.at, 1), mark.text) for mark in story.events()] == [
        (0.5, "n1 is elected root, term 1"),
        (2.6, "n2 is elected root, term 2"),
    ]
    assert story.takeover_s == pytest.approx(0.4)


def test_archived_rows_grow_in_steps() -> None:
    story = Story()
    for rows in (0, 0, 100, 100, 250):
        story.note_archived(rows)
    assert [rows for _, rows in story.archived] == [0, 0, 0, 100, 100, 250]


def test_a_deaf_subscriber_has_a_line_in_the_report() -> None:
    account = Account(
        published=published(4),
        seen=[Seen({FIRST: bytes([1] * 4)}, {})],
        heard=[Heard("n3", True, 0, {})],
        read=[Read("n2", 4, 0, {FIRST: bytes([1] * 4)})],
    )
    document = ElementTree.fromstring(page(Story(), account, []).removeprefix("<!DOCTYPE html>\n"))
    rows = [["".join(cell.itertext()) for cell in row.iter("td")] for row in document.iter("tr")]
    assert ["n3", "to the end", "2", "0", "0", "2"] in rows
    assert ["n2", "4", "0", "0"] in rows
    assert "The accounting does not balance" in "".join(document.itertext())
