"""Staged batches: invisible until they are decided, published once, in order, by whichever broker is root."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from pandomq import limits, methods
from pandomq.broker.limits import BrokerLimits, TableLimits
from pandomq.broker.log.commands import DeleteVhost, PutPermissions, PutTopicPermissions, PutVhost
from pandomq.broker.publishing.producer_views import ProducerViews, StagedView
from pandomq.broker.staging.names import StagingAttempt, attempt_of
from pandomq.errors import Fault
from pandomq.properties import Properties, encode_header
from pandomq.wire import codec
from tests.unit.broker.conversation import World
from tests.unit.broker.durable_view import durable_view
from tests.unit.broker.staging_scene import COMMITTED, PERSISTENT, STAGED, Sink, frames, prepared
from tests.unit.broker.test_producers import held
from tests.unit.broker.test_snapshot import restored, revived

TWO_QUERIES = BrokerLimits(tables=TableLimits(staged_queries_max=2))


def alone(world: World) -> dict[str, object]:
    for client in list(world.broker.clients):
        world.broker.disconnect(client, world.now_ms)
    world.run([])
    return durable_view(world.broker)


@pytest.mark.proves("S2")
def test_staged_messages_are_invisible_until_the_commit() -> None:
    world, sink = prepared()
    sink.stage(frames("1", "2"))
    sink.stage(frames("3"), 1)
    sink.stage(frames("4"), partition=1, attempt="b")
    assert sink.heard() == [STAGED] * 3
    peer = world.peer()
    assert peer.counts("q") == (0, 0)
    assert list(sink.vhost.queues) == ["q"]
    views = ProducerViews(world.broker)
    size_bytes = len(frames("1", "2") + frames("3") + frames("4"))
    assert views.staged() == StagedView(attempts=2, size_bytes=size_bytes, batches_open=0, parts_published=0)
    assert sink.last_batch() == -1
    sink.commit((1, "b", 1), (0, "a", 2))
    assert sink.heard() == [COMMITTED]
    assert held(world) == [b"1", b"2", b"3", b"4"]
    assert sink.last_batch() == 0
    assert sink.vhost.inner_queues == {}
    assert views.staged() == StagedView(attempts=0, size_bytes=0, batches_open=0, parts_published=3)
    assert durable_view(world.replayed().broker) == alone(world)


@pytest.mark.proves("S2")
def test_requests_to_stage_and_to_commit_may_be_repeated() -> None:
    world, sink = prepared()
    for _ in range(2):
        sink.stage(frames("1"))
        sink.stage(frames("2"), 1)
    for _ in range(2):
        sink.commit((0, "a", 2))
    assert sink.heard() == [STAGED] * 4 + [COMMITTED] * 2
    # A late part is not kept.
    sink.stage(frames("2"), 1)
    sink.stage(frames("x"), attempt="late")
    assert sink.heard() == [("staged", True)] * 2
    sink.commit((0, "late", 1))
    assert sink.heard() == [COMMITTED]
    other = Sink(world.replayed())
    assert held(world) == [b"1", b"2"]
    other.commit((0, "a", 2))
    assert other.heard() == [COMMITTED]
    assert held(other.world) == [b"1", b"2"]


@pytest.mark.proves("S2")
def test_streams_get_it_in_order() -> None:
    world, sink = prepared(())
    world.peer().declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for partition in range(2):
        for part in range(2):
            sink.stage(frames(f"{partition} {part} 0", f"{partition} {part} 1", key="s"), part, partition=partition)
    stream = world.broker.streams.find("/", "s")
    assert stream is not None
    assert stream.committed_end == 0
    for _ in range(2):
        sink.commit((0, "a", 2), (1, "a", 2))
    assert stream.committed_end == 8
    read: list[bytes | None] = []
    stream.read(0, read.append)
    (octets,) = read
    assert octets is not None
    places = [
        octets.index(f"{partition} {part} {row}".encode()) for partition, part, row in product(range(2), repeat=3)
    ]
    assert places == sorted(places)


def test_one_attempt_counts_and_the_others_go() -> None:
    world, sink = prepared()
    sink.stage(frames("old"), batch=3)
    sink.stage(frames("lost"), batch=4, attempt="a")
    sink.stage(frames("won"), batch=4, attempt="b")
    sink.stage(frames("next"), batch=5, attempt="c")
    other = Sink(world, query="v")
    other.stage(frames("other"), batch=1)
    sink.commit((0, "b", 1), batch=4)
    assert held(world) == [b"won"]
    assert [attempt_of(name) for name in sink.vhost.inner_queues] == [
        StagingAttempt(5, 0, "c", "w"),
        StagingAttempt(1, 0, "a", "v"),
    ]
    sink.drop((0, "c"), (7, "unknown"), batch=5)
    other.commit((0, "a", 1), batch=1)
    assert held(world) == [b"other"]
    assert sink.vhost.inner_queues == {}
    assert (sink.last_batch(), other.last_batch()) == (4, 1)


def refused(ask: Callable[[], None], world: World) -> tuple[int, str]:
    with pytest.raises(Fault) as caught:
        ask()
    world.run([])
    return caught.value.reply_code, caught.value.reply_text


def test_missing_or_incomplete_attempts_are_not_committed() -> None:
    world, sink = prepared()
    sink.stage(frames("1"))
    assert refused(lambda: sink.ask_commit((0, "b", 1)), world)[0] == 404
    assert refused(lambda: sink.ask_commit((0, "a", 1), (1, "a", 1)), world)[0] == 404
    code, text = refused(lambda: sink.ask_commit((0, "a", 2)), world)
    assert (code, "has staged 1 parts, not 2" in text) == (406, True)
    sink.stage(frames("x"), attempt="b")
    assert refused(lambda: sink.ask_commit((0, "a", 1), (0, "b", 1)), world)[0] == 406
    assert sink.last_batch() == -1
    sink.commit((0, "a", 1))
    assert held(world) == [b"1"]
    # Partitions without rows need no attempt.
    sink.commit((0, "none", 0), batch=1)
    assert sink.last_batch() == 1
    assert refused(lambda: sink.stage(frames("y"), 1, batch=2), world)[0] == 406


def test_messages_that_may_not_be_published_are_refused_when_they_are_staged() -> None:
    world, sink = prepared()
    world.admit("ann", write="other|amq.topic")
    ann = Sink(world, user="ann")
    assert refused(lambda: ann.stage(frames("1")), world)[0] == 403
    assert world.administer(PutTopicPermissions("/", "ann", "amq.topic", "a.*", "")) is None
    assert refused(lambda: ann.stage(frames("1", exchange="amq.topic", key="b.c")), world)[0] == 403
    ann.stage(frames("1", exchange="amq.topic", key="a.c"))
    assert ann.heard() == [STAGED]
    assert refused(lambda: sink.stage(frames("1", exchange="amq.topic")), world)[0] == 403, "it is ann's attempt"
    assert refused(lambda: sink.ask_commit((0, "a", 1)), world)[0] == 403
    sink.drop((0, "a"))
    ann.commit((0, "a", 1))
    assert ann.heard() == [COMMITTED]
    assert refused(lambda: ann.stage(frames("1", exchange="other"), batch=1), world)[0] == 404


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (frames("1")[:-1], 501),
        (frames("1") + b"x", 501),
        (b"\1\0\1", 501),
        (frames("1", channel=2), 501),
        (frames("1") + codec.encode_frame(1, methods.BasicAck(1)), 501),
        (codec.encode_frame(1, methods.QueueDelete("q")), 501),
        (frames("1", properties=Properties(expiration="never")), 406),
        (frames("1", properties=Properties(user_id="ann")), 406),
        (frames("1", properties=Properties(reply_to="amq.rabbitmq.reply-to")), 406),
        (frames("1", properties=Properties(headers={"x-producer": "p", "x-sequence": 1})), 406),
        (codec.encode_content(1, methods.BasicPublish("", "q", True), encode_header(0, PERSISTENT), b"", 4096), 406),
    ],
    ids=range(11),
)
def test_malformed_parts_are_refused(octets: bytes, code: int) -> None:
    world, sink = prepared()
    assert refused(lambda: sink.stage(frames("0") + octets), world)[0] == code
    assert sink.vhost.inner_queues == {}
    sink.stage(b"")
    sink.commit((0, "a", 1))
    assert sink.heard() == [STAGED, COMMITTED]


@pytest.mark.proves("S2")
def test_the_next_root_goes_on_where_the_last_one_ended() -> None:
    world, sink = prepared(("q", "r"))
    wanted: list[bytes] = []
    for partition in range(3):
        for part in range(3):
            bodies = [f"{partition} {part} {number}" for number in range(2)]
            wanted += map(str.encode, bodies)
            sink.stage(frames(*bodies, key="q"), part, partition=partition)
    sink.ask_commit(*((partition, "a", 3) for partition in range(3)))
    before = len(world.entries)
    world.run([])
    after = len(world.entries)
    assert after - before >= 9, "a part is an entry"
    assert held(world) == wanted
    for count in range(before, after + 1):
        # The root died when so many entries were committed.
        successor = World(seed=2)
        for index, entry in enumerate(world.entries[:count], start=1):
            successor.broker.apply(index, 1, entry)
        successor.run([])
        again = Sink(successor)
        again.commit(*((partition, "a", 3) for partition in range(3)))
        assert again.heard() == [COMMITTED]
        assert held(successor) == wanted
        assert again.vhost.inner_queues == {}


def test_a_snapshot_in_the_middle() -> None:
    world, sink = prepared()
    for part in range(3):
        sink.stage(frames(str(part)), part)
    sink.stage(frames("later"), batch=1)
    sink.ask_commit((0, "a", 3))
    world._finish(world.broker.handle([], world.now_ms))
    assert len(world.broker.state.staged.open) == 1
    other = revived(world)
    other.run([])
    assert held(other) == [b"0", b"1", b"2"]
    again = Sink(other)
    assert again.last_batch() == 0
    again.commit((0, "a", 1), batch=1)
    assert held(other) == [b"later"]
    assert Sink(revived(other)).last_batch() == 1


def test_answers_wait_for_the_log() -> None:
    world, sink = prepared()
    world.late = True
    sink.stage(frames("1"))
    sink.stage(frames("1"))
    assert sink.heard() == []
    world.commit()
    assert sink.heard() == [STAGED] * 2
    sink.commit((0, "a", 1))
    sink.commit((0, "a", 1))
    assert sink.heard() == []
    world.commit(len(world.entries) - 1)
    assert sink.heard() == []
    world.commit()
    assert sink.heard() == [COMMITTED] * 2


def test_the_log_is_not_given_more_than_it_can_take() -> None:
    world, sink = prepared()
    count = limits.STAGED_PARTS_UNCOMMITTED_MAX + 2
    for part in range(count):
        sink.stage(frames(str(part)), part)
    world.late = True
    sink.commit((0, "a", count))
    published = world.broker.engine.published
    assert published == limits.STAGED_PARTS_UNCOMMITTED_MAX
    world.commit(len(world.entries) - limits.STAGED_PARTS_UNCOMMITTED_MAX + 1)
    assert world.broker.engine.published == published + 1
    world.commit()
    world.commit()
    assert sink.heard()[-1] == COMMITTED
    world.late = False
    assert held(world) == [str(part).encode() for part in range(count)]


def test_abandoned_attempts_are_removed_and_decided_batches_stay() -> None:
    world, sink = prepared()
    sink.stage(frames("1"), attempt="gone")
    world.pass_time(limits.STAGED_LEFT_ALONE_MS - 1)
    sink.stage(frames("2"), attempt="kept")
    world.pass_time(1)
    world.run([])
    assert [attempt_of(name) for name in sink.vhost.inner_queues] == [StagingAttempt(0, 0, "kept", "w")]
    assert refused(lambda: sink.ask_commit((0, "gone", 1)), world)[0] == 404
    world.broker.held.let_publishes_wait(wait=True)
    sink.commit((0, "kept", 1))
    world.pass_time(3 * limits.STAGED_LEFT_ALONE_MS)
    assert len(sink.vhost.inner_queues) == 1
    assert world.peer().counts() == (0, 0)
    world.broker.held.let_publishes_wait(wait=False)
    world.run([])
    assert held(world) == [b"2"]
    assert durable_view(world.replayed().broker) == alone(world)


def test_staged_messages_that_became_unroutable_are_dropped_and_the_others_are_not() -> None:
    world, sink = prepared()
    peer = world.peer()
    peer.call(methods.ExchangeDeclare("x", "fanout"), expect=methods.ExchangeDeclareOk)
    sink.stage(frames("1") + frames("2", exchange="x") + frames("3"))
    peer.call(methods.ExchangeDelete("x"), expect=methods.ExchangeDeleteOk)
    sink.commit((0, "a", 1))
    assert sink.heard() == [STAGED, COMMITTED]
    assert held(world) == [b"1", b"3"]


def test_vhosts_are_apart() -> None:
    world, sink = prepared()
    assert world.administer(PutVhost("other"), PutPermissions("other", "guest", ".*", ".*", ".*")) is None
    other = Sink(world, vhost="other")
    for one in (sink, other):
        one.stage(frames("1"))
    sink.commit((0, "a", 1))
    assert other.last_batch() == -1
    world.broker.held.let_publishes_wait(wait=True)
    other.commit((0, "a", 1))
    assert other.heard() == [STAGED]
    assert world.administer(DeleteVhost("other")) is None
    assert other.heard() == [COMMITTED], "nobody waits for what can no longer be"
    world.broker.held.let_publishes_wait(wait=False)
    sink.stage(frames("2"), batch=1)
    sink.commit((0, "a", 1), batch=1)
    other_world = world.replayed()
    assert held(world) == [b"1", b"2"]
    assert held(other_world) == [b"1", b"2"]
    assert durable_view(world.replayed().broker) == alone(world)


def test_attempts_and_queries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pandomq.broker.staging.staging.STAGED_ATTEMPTS_MAX", 2)
    world, sink = prepared(limits=TWO_QUERIES)
    sink.stage(frames("1"), attempt="a")
    sink.stage(frames("1"), attempt="b")
    assert refused(lambda: sink.stage(frames("1"), attempt="c"), world)[0] == 406
    for query in ("1", "2", "3"):
        Sink(world, query=query).commit(batch=7)
    assert [Sink(world, query=query).last_batch() for query in ("1", "2", "3")] == [-1, 7, 7]
    world.now_ms += limits.STAGED_QUERY_AGE_MS + 1
    Sink(world, query="4").commit(batch=7)
    assert [Sink(world, query=query).last_batch() for query in ("2", "3", "4")] == [-1, -1, 7]
    assert durable_view(world.replayed().broker) == alone(world)


@pytest.mark.proves("S2")
def test_a_query_that_commits_is_not_the_one_that_is_forgotten() -> None:
    world, sink = prepared(limits=TWO_QUERIES)
    sink.commit(batch=0)
    Sink(world, query="v").commit(batch=0)
    for batch in (1, 2):
        # The first time the table is full, the second time the query was silent for too long.
        for _ in range(2):
            sink.stage(frames(str(batch)), batch=batch)
            sink.commit((0, "a", 1), batch=batch)
        assert held(world) == [str(batch).encode()]
        assert sink.last_batch() == batch
        if batch == 1:
            assert Sink(world, query="v").last_batch() == 0, "one that is known already needs no room"
        world.now_ms += limits.STAGED_QUERY_AGE_MS + 1
    assert durable_view(world.replayed().broker) == alone(world)


@pytest.mark.proves("S2")
def test_a_query_whose_batch_is_being_published_is_not_forgotten() -> None:
    world, sink = prepared(limits=TWO_QUERIES)
    sink.stage(frames("1"))
    world.broker.held.let_publishes_wait(wait=True)
    sink.commit((0, "a", 1))
    world.now_ms += limits.STAGED_QUERY_AGE_MS + 1
    for query in ("x", "y", "z"):
        Sink(world, query=query).commit(batch=7)
    assert [Sink(world, query=query).last_batch() for query in ("w", "x", "y", "z")] == [0, -1, -1, 7]
    assert staged(restored(world)) == staged(world.replayed()) == staged(world)
    sink.commit((0, "a", 1))
    world.broker.held.let_publishes_wait(wait=False)
    world.run([])
    assert sink.heard() == [STAGED, COMMITTED, COMMITTED]
    assert held(world) == [b"1"]


@pytest.mark.proves("S2")
def test_a_snapshot_has_decisions_in_their_order() -> None:
    world, sink = prepared()
    other = Sink(world, query="v")
    sink.commit(batch=0)
    sink.stage(frames("5"), batch=5)
    other.stage(frames("3"), batch=3)
    world.broker.held.let_publishes_wait(wait=True)
    sink.commit((0, "a", 1), batch=5)
    Sink(world, query="between").commit(batch=2)
    other.commit((0, "a", 1), batch=3)
    sink.commit(batch=6)
    assert staged(restored(world)) == staged(world.replayed()) == staged(world)
    assert staged(world)[0] == [("between", 2), ("v", 3), ("w", 6)]
    again = revived(world)
    assert Sink(again).last_batch() == 6
    assert held(again) == [b"5", b"3"]


def staged(world: World) -> tuple[list[tuple[str, int]], list[tuple[str, str, str, int]]]:
    """The last batches of queries, the oldest decision first; and those that are open, in order."""
    decisions = world.broker.state.staged
    return [(decided.query, decided.batch) for decided in decisions.oldest_first()], list(decisions.open)
