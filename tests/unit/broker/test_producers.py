"""Messages that other brokers repeat on behalf of their clients have their effect once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq import limits, methods
from pandomq.broker.publishing.producers import ProducerTable
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.test_outlets import Elsewhere
from tests.unit.broker.test_snapshot import revived

PERSISTENT = Properties(delivery_mode=2)
PRODUCER = 2**62 + 7
LABEL = PRODUCER.to_bytes(8, "big")
RETURNED: list[type[methods.Method]] = [methods.BasicReturn, methods.BasicAck]


def tunnel(world: World, count: int | str = 0, *, producer: int = PRODUCER, origin: str = "n2") -> tuple[Peer, int]:
    """A client of another broker, and up to which number its producer is known."""
    peer = world.connect(origin=origin)
    answer = peer.call(methods.ChannelOpen(f"{producer}:{count}"), expect=methods.ChannelOpenOk)
    return peer, int(answer.channel_id)


def known(world: World, *, producer: int = PRODUCER) -> int:
    peer, number = tunnel(world, producer=producer)
    peer.leave()
    return number


def test_the_table_forgets_the_oldest_and_the_silent() -> None:
    table = ProducerTable()
    for producer in range(limits.PRODUCERS_REMEMBERED_MAX + 1):
        table.note(producer, 1, 0)
    assert len(table) == limits.PRODUCERS_REMEMBERED_MAX
    assert (table.last_number(0), table.last_number(1)) == (0, 1)
    table.note(1, 5, 1)
    table.note(-1, 1, 2)
    assert (table.last_number(1), table.last_number(2)) == (5, 0)
    for part in range(1, 6):
        table.note(7, part, limits.PRODUCER_REMEMBERED_MS * part // 5 + 1)
    assert [row[0] for row in table.rows()] == [1, -1, 7]


@pytest.mark.proves("R29")
def test_hours_in_which_there_was_no_root_do_not_count() -> None:
    """A broker waits for a root with publishes of which it does not know whether the last root took them."""
    table = ProducerTable()
    step_ms = limits.PRODUCER_REMEMBERED_MS // 5
    table.note(1, 5, 0)
    table.note(2, 1, step_ms)
    after_ms = 100 * limits.PRODUCER_REMEMBERED_MS
    table.note(3, 1, after_ms)
    assert table.last_number(1) == 5
    for part in range(1, 6):
        table.note(3, part, after_ms + step_ms * part)
    assert (table.last_number(1), table.last_number(2)) == (0, 1)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(0, 6)), max_size=30))
def test_a_table_made_of_its_rows_is_the_same(notes: list[tuple[int, int, int]]) -> None:
    table, now_ms = ProducerTable(), 0
    for producer, number, hours in notes:
        now_ms += hours * limits.PRODUCER_REMEMBERED_MS // 5
        table.note(producer, number, now_ms)
    other = ProducerTable()
    for row in table.rows():
        other.reinstate(*row)
    assert other.rows() == table.rows()


@pytest.mark.proves("R29")
def test_commits_are_numbered_and_a_broker_with_the_log_knows_the_last() -> None:
    world = World()
    world.peer().declare("q", durable=True)
    peer, number = tunnel(world)
    assert number == 0
    peer.send(methods.TxSelect())
    for _ in range(2):
        peer.publish("", "q", b"m", PERSISTENT).send(methods.TxCommit())
    peer.publish("", "q", b"m", PERSISTENT).send(methods.TxRollback())
    peer.leave()
    for other in (world, world.replayed(), revived(world)):
        assert known(other) == 2
        assert known(other, producer=1) == 0
    peer, _ = tunnel(world, 2)
    peer.send(methods.TxSelect(), methods.TxCommit())
    peer.leave()
    assert known(world) == 3


def test_the_answer_waits_for_the_log() -> None:
    world = World()
    peer, _ = tunnel(world)
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    world.late = True
    peer.send(methods.TxCommit())
    peer.leave()
    again = world.connect(origin="n2")
    assert again.send(methods.ChannelOpen(f"{PRODUCER}:1")).heard() == []
    world.commit()
    assert again.heard() == [methods.ChannelOpenOk(b"1")]


def test_a_newer_connection_ends_the_older_one() -> None:
    world = World()
    world.peer().declare("q")
    old, _ = tunnel(world)
    old.send(methods.TxSelect()).publish("", "q")
    new, number = tunnel(world)
    assert number == 0
    assert old.fault().reply_code == 320
    old.send(methods.TxCommit())
    assert world.peer().counts("q")[0] == 0
    old.leave()
    new.send(methods.TxSelect(), methods.TxCommit())
    assert known(world) == 1


def test_malformed_names_of_producers_are_refused() -> None:
    world = World()
    for said in ("x", "1", "0:1", ":", "1:-1", f"{2**64}:0", "1:2:x", "1:2:3:4"):
        peer = world.connect(origin="n2")
        peer.send(methods.ChannelOpen(said))
        assert peer.fault().reply_code == 502, said
    # To others the string means nothing.
    world.connect().call(methods.ChannelOpen("x"), expect=methods.ChannelOpenOk)
    twice, _ = tunnel(world)
    twice.send(methods.ChannelOpen(f"{PRODUCER}:0"), channel=2)
    assert twice.fault().reply_code == 502


def test_notes_of_producers_are_no_matter_of_configuration() -> None:
    world = World()
    heard: list[bytes] = []
    world.broker.on_command = heard.append
    world.broker.held.applied_everywhere(0)
    peer, _ = tunnel(world)
    peer.send(methods.TxSelect(), methods.TxCommit())
    assert len(peer.heard()) == 2
    assert heard == []
    assert len(world.replayed().broker.state.producers) == 1


# Publishes, in confirm mode.


def publisher(world: World, count: int | str = 0) -> tuple[Peer, int]:
    peer, number = tunnel(world, count)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    return peer, number


def send(peer: Peer, *bodies: bytes, queue: str = "q", mandatory: bool = False) -> list[methods.Method]:
    for body in bodies:
        peer.say_publish("", queue, body, PERSISTENT, mandatory=mandatory)
    return peer.flush().heard()


def held(world: World, queue: str = "q") -> list[bytes]:
    peer, bodies = world.peer(), []
    while (got := peer.get(queue)) is not None:
        bodies.append(got.body)
    return bodies


def test_numbering_continues_at_the_number_that_the_other_broker_sends() -> None:
    world = World()
    world.peer().declare("q", durable=True)
    peer, _ = publisher(world)
    # Publishes before confirm.select have no number, and a second confirm.select changes nothing.
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    assert send(peer, b"1", b"2") == [methods.BasicAck(2, True)]
    peer.leave()
    peer, number = publisher(world, 7)
    assert number == 2
    assert send(peer, b"8") == [methods.BasicAck(8)]


@pytest.mark.proves("R29")
def test_a_message_that_comes_again_at_another_root_is_confirmed_and_not_enqueued() -> None:
    world = World()
    world.peer().declare("q", durable=True)
    peer, _ = publisher(world)
    send(peer, b"1", b"2")
    send(peer, b"3")
    for other in (world.replayed(), revived(world)):
        again, number = publisher(other, 1)
        assert number == 3
        assert send(again, b"2", b"3", b"4") == [methods.BasicAck(3, True), methods.BasicAck(4)]
        assert send(again, b"5") == [methods.BasicAck(5)]
        assert held(other) == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.proves("R29")
def test_an_unknown_message_that_comes_again_is_marked_redelivered() -> None:
    world = World()
    world.peer().declare("q", durable=True)
    peer, _ = publisher(world)
    send(peer, b"1", b"2")
    # The last root may have delivered 3 and 4 before it died; nobody has sent 5 anywhere.
    root = world.replayed()
    again, number = publisher(root, "1:4")
    assert number == 2
    send(again, b"2", b"3", b"4", b"5")
    reader = root.peer()
    found: list[Any] = [reader.get("q") for _ in range(5)]
    assert [(one.body, one.method.redelivered) for one in found] == [
        (b"1", False),
        (b"2", False),
        (b"3", True),
        (b"4", True),
        (b"5", False),
    ]


def test_the_same_root_also_recognises_messages_that_were_not_logged() -> None:
    world = World()
    world.peer().declare("q")
    peer, _ = publisher(world)
    send(peer, b"1", b"2")
    assert len(world.broker.state.producers) == 0
    again, number = publisher(world)
    assert number == 2
    assert send(again, b"1", b"2", b"3") == [methods.BasicAck(3, True)]
    assert held(world) == [b"1", b"2", b"3"]


def test_a_message_that_comes_again_goes_to_outlets_with_its_number() -> None:
    world = World()
    world.peer().declare("q", durable=True)
    n3 = Elsewhere(world, "n3", ("amq.direct", "k"))
    world.peer().call(methods.QueueBind("q", "amq.direct", "k"), expect=methods.QueueBindOk)
    peer, _ = publisher(world)
    peer.publish("amq.direct", "k", b"1", PERSISTENT)
    again, _ = publisher(world)
    blind = Properties(delivery_mode=2, headers={"BCC": ["x"]})
    again.publish("amq.direct", "k", b"1", PERSISTENT).publish("amq.direct", "k", b"2", blind)
    world.peer().publish("amq.direct", "k", b"of nobody")
    deliveries = [(one.method, one.body) for one in n3.trunk.hear()]
    assert [
        (method.consumer_tag.encode("utf-8", "surrogateescape"), method.delivery_tag, body)
        for method, body in deliveries
        if isinstance(method, methods.BasicDeliver)
    ] == [(LABEL, 1, b"1"), (LABEL, 1, b"1"), (LABEL, 2, b"2"), (b"", 0, b"of nobody")]
    assert held(world) == [b"1", b"2", b"of nobody"]


def test_an_unroutable_message_is_returned_again_and_a_routed_one_is_not() -> None:
    world = World()
    world.peer().declare("q", durable=True)
    peer, _ = publisher(world)
    assert [type(method) for method in send(peer, b"1", queue="nowhere", mandatory=True)] == RETURNED
    send(peer, b"2", mandatory=True)
    again, number = publisher(world)
    assert number == 2
    assert [type(method) for method in send(again, b"1", queue="nowhere", mandatory=True)] == RETURNED
    assert send(again, b"2", mandatory=True) == [methods.BasicAck(2)]


def test_a_message_that_may_have_been_refused_is_refused_when_it_comes_again() -> None:
    world = World()
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    world.peer().declare("q", durable=True, arguments=full)
    world.peer().declare("other", durable=True)
    peer, _ = publisher(world)
    assert [type(method) for method in send(peer, b"1", b"2")] == [methods.BasicAck, methods.BasicNack]
    send(peer, b"3", queue="other")
    again, number = publisher(world, 1)
    assert number == 3
    assert send(again, b"2") == [methods.BasicNack(2, requeue=False)]
    assert held(world) == [b"1"]


def taken(peer: Peer, queue: str) -> list[bytes]:
    """The bodies of all messages of a queue."""
    bodies = []
    while (got := peer.get(queue)) is not None:
        bodies.append(got.body)
    return bodies


@pytest.mark.proves("R29")
def test_a_publish_that_an_earlier_root_confirmed_is_only_counted() -> None:
    """Queues that were bound after its confirm do not get it, and its sender keeps its channel whatever has been
    deleted in the meantime."""
    world = World()
    world.peer().declare("later")
    peer, _ = tunnel(world, "0:3")
    peer.send(methods.ConfirmSelect())
    peer.say_publish("", "later", b"1")
    peer.say_publish("", "later", b"2", confirmed_before=True)
    peer.say_publish("deleted", "later", b"3", confirmed_before=True).flush()
    assert peer.heard() == [methods.ConfirmSelectOk(), methods.BasicAck(3, True)]
    assert taken(world.peer(), "later") == [b"1"]


def test_a_client_cannot_mark_its_publish_as_confirmed_before() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.say_publish("", "q", b"1", confirmed_before=True).flush()
    assert taken(world.peer(), "q") == [b"1"]
