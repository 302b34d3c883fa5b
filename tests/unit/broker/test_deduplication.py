"""Publishes of who names itself and numbers its messages have their effect once (D11)."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import DeleteVhost, PutPermissions, PutVhost
from pandomq.fieldtable import Int32, UInt8
from pandomq.properties import Properties
from tests.unit.broker.conversation import NOW_MS, Peer, World
from tests.unit.broker.durable_view import durable_view
from tests.unit.broker.test_outlets import Elsewhere
from tests.unit.broker.test_producers import held
from tests.unit.broker.test_snapshot import revived

FULL = {"x-max-length": 1, "x-overflow": "reject-publish"}


def numbered(number: Any, *, name: Any = "p", mode: int | None = 2, **headers: Any) -> Properties:
    return Properties(delivery_mode=mode, headers={"x-producer": name, "x-sequence": number, **headers})


def confirming(world: World, *, origin: str | None = None, identity: int = 0) -> Peer:
    peer = world.connect(origin=origin)
    peer.client.identity = identity
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    return peer


def prepared(**limits: Any) -> World:
    world = World(limits=BrokerLimits(**limits))
    world.peer().declare("q", durable=True)
    return world


def send(peer: Peer, *numbers: int, queue: str = "q", mandatory: bool = False, **more: Any) -> list[methods.Method]:
    """Each with its number as body, all in one read."""
    for number in numbers:
        peer.say_publish("", queue, b"%d" % number, numbered(number, **more), mandatory=mandatory)
    return peer.flush().heard()


def refusal(answers: list[methods.Method]) -> str:
    (close,) = answers
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    return close.reply_text


@pytest.mark.proves("R25")
def test_a_message_that_comes_again_is_confirmed_and_not_enqueued() -> None:
    world = prepared()
    peer = confirming(world)
    assert send(peer, 1, 2, 5) == [methods.BasicAck(3, True)]
    assert send(peer, 5, 2, 6, 6) == [methods.BasicAck(7, True)]
    again = confirming(world)
    assert send(again, 1, 2, 5, 6, 7) == [methods.BasicAck(5, True)]
    assert held(world) == [b"1", b"2", b"5", b"6", b"7"]
    assert world.broker.deduplication.duplicate_count == 7


@pytest.mark.proves("R25")
def test_a_broker_with_the_log_recognises_repeated_messages() -> None:
    world = prepared()
    world.peer().declare("passing")
    peer = confirming(world)
    send(peer, 1, 2)
    send(peer, 4, queue="passing", mode=1)
    peer.leave()
    for other in (world.replayed(), revived(world)):
        again = confirming(other)
        assert send(again, 1, 2, 4, 5) == [methods.BasicAck(4, True)]
        assert held(other) == [b"1", b"2", b"5"]
    assert world.broker.state.named_producers.rows() == world.replayed().broker.state.named_producers.rows()


@pytest.mark.proves("R25")
def test_a_duplicate_is_confirmed_when_its_original_is_committed() -> None:
    world = prepared()
    peer, again = confirming(world), confirming(world)
    world.late = True
    assert send(peer, 1) == []
    assert send(again, 1) == []
    assert send(again, 1) == []
    world.commit()
    assert peer.heard() == [methods.BasicAck(1)]
    assert again.heard() == [methods.BasicAck(2, True)]
    assert held(world) == [b"1"]


@pytest.mark.proves("R25")
def test_streams_have_it_once_too() -> None:
    world = World()
    world.peer().declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer = confirming(world)
    assert send(peer, 1, 2, 2, queue="s", mode=1) == [methods.BasicAck(3, True)]
    assert send(peer, 1, 3, queue="s", mode=1) == [methods.BasicAck(5, True)]
    for other in (world, world.replayed()):
        stream = other.broker.streams.find("/", "s")
        assert stream is not None
        assert (stream.first_offset, stream.committed_end) == (0, 3)


def test_without_confirms_it_is_passed_over() -> None:
    world = prepared()
    peer = world.peer()
    assert send(peer, 1, 1, 2, 1) == []
    assert held(world) == [b"1", b"2"]


@pytest.mark.proves("R25")
def test_a_lower_number_that_was_never_seen_is_an_error() -> None:
    world = prepared()
    peer = confirming(world)
    send(peer, 1, 5)
    text = refusal(send(peer, 3))
    assert "number 3 of producer 'p'" in text and "above 5" in text
    assert held(world) == [b"1", b"5"]
    again = confirming(world)
    assert send(again, 1, 5, 6) == [methods.BasicAck(3, True)]


def test_names_belong_to_vhosts() -> None:
    world = prepared()
    assert world.administer(PutVhost("other"), PutPermissions("other", "guest", ".*", ".*", ".*")) is None
    world.peer(vhost="other").declare("q", durable=True)
    send(confirming(world), 1)
    elsewhere = world.peer(vhost="other")
    send(elsewhere, 1)
    assert elsewhere.counts("q")[0] == 1
    assert len(world.broker.state.named_producers) == 2
    elsewhere.leave()
    assert world.administer(DeleteVhost("other")) is None
    assert [producer.vhost for producer in world.broker.state.named_producers] == ["/"]
    assert world.replayed().broker.state.named_producers.rows() == world.broker.state.named_producers.rows()


@pytest.mark.proves("R25")
def test_a_refused_publish_is_not_recorded() -> None:
    world = prepared()
    world.peer().declare("full", durable=True, arguments=FULL)
    peer = confirming(world)
    answers = send(peer, 1, 2, 3, queue="full")
    assert answers == [methods.BasicAck(1), methods.BasicNack(2, requeue=False), methods.BasicNack(3, requeue=False)]
    assert send(peer, 4) == [methods.BasicAck(4)]
    assert held(world, "full") == [b"1"]
    # A client that repeats all unconfirmed messages adds the missing ones.
    for other in (world, world.replayed()):
        again = confirming(other)
        assert send(again, 1, 2, queue="full") == [methods.BasicAck(2, True)]
        assert send(again, 4) == [methods.BasicAck(3)]
        assert held(other, "full") == [b"2"]
        assert send(again, 2, 3, queue="full") == [methods.BasicAck(5, True)]
        assert held(other, "full") == [b"3"]


def test_a_message_that_some_queues_accepted_is_refused_again() -> None:
    world = prepared()
    peer = world.peer()
    peer.declare("full", durable=True, arguments=FULL)
    for queue in ("q", "full"):
        peer.call(methods.QueueBind(queue, "amq.fanout", ""), expect=methods.QueueBindOk)
    peer.publish("", "full", b"0")
    publisher = confirming(world)
    for answer in (methods.BasicNack(1, requeue=False), methods.BasicNack(2, requeue=False)):
        assert publisher.publish("amq.fanout", "", b"1", numbered(1)).heard() == [answer]
    assert held(world) == [b"1"]
    again = confirming(world.replayed())
    assert again.publish("amq.fanout", "", b"1", numbered(1)).heard() == [methods.BasicNack(1, requeue=False)]


@pytest.mark.proves("R25")
def test_a_returned_message_is_not_recorded_and_a_dropped_one_is() -> None:
    world = prepared()
    peer = confirming(world)
    back, ack = send(peer, 1, queue="later", mandatory=True)
    assert (type(back), ack) == (methods.BasicReturn, methods.BasicAck(1))
    assert send(peer, 2, queue="later") == [methods.BasicAck(2)]
    assert send(peer, 3) == [methods.BasicAck(3)]
    world.peer().declare("later", durable=True)
    assert send(peer, 1, 2, queue="later", mandatory=True) == [methods.BasicAck(5, True)]
    assert held(world, "later") == [b"1"]


@pytest.mark.proves("R25")
def test_a_newer_connection_fences_the_older() -> None:
    world = prepared()
    old, new = confirming(world), confirming(world)
    send(old, 1)
    send(new, 1, 2)
    assert "a newer connection publishes as producer 'p'" in refusal(send(old, 3))
    old.reopen()
    # Its other names are its own.
    assert send(old, 3, name="other") == []
    assert send(new, 3) == [methods.BasicAck(3)]
    assert held(world) == [b"1", b"2", b"3", b"3"]
    assert world.broker.deduplication.fenced_count == 1


def test_an_older_connection_is_fenced_also_if_it_never_had_the_name() -> None:
    world = prepared()
    old, new = confirming(world), confirming(world)
    send(new, 1)
    new.leave()
    refusal(send(old, 2))
    # At different brokers nobody can tell which connection is older.
    there, here = confirming(world, origin="n2", identity=2**60), confirming(world, origin="n3", identity=2**61)
    send(here, 1, name="x")
    assert send(there, 2, name="x") == [methods.BasicAck(1)]
    refusal(send(here, 3, name="x"))


def test_the_next_root_knows_who_is_fenced() -> None:
    world = prepared()
    old, new = confirming(world, origin="n2", identity=11), confirming(world, origin="n3", identity=12)
    send(old, 1)
    send(new, 2)
    other = world.replayed()
    old = confirming(other, origin="n2", identity=11)
    new = confirming(other, origin="n3", identity=12)
    refusal(send(old, 3))
    assert send(new, 1, 2, 3) == [methods.BasicAck(3, True)]
    assert held(other) == [b"1", b"2", b"3"]


@pytest.mark.proves("R25")
def test_the_next_root_knows_of_all_that_took_over_in_one_batch() -> None:
    world = prepared()
    first, *others = [confirming(world, origin=f"n{number}", identity=number << 40) for number in range(2, 6)]
    send(first, 1)
    for number, peer in enumerate(others, start=2):
        peer.say_publish("", "q", b"%d" % number, numbered(number))
    world.run([(peer.client, peer.take_inputs()) for peer in others])
    for other in (world.replayed(), revived(world)):
        assert other.broker.state.named_producers.rows() == world.broker.state.named_producers.rows()
        for number in range(2, 5):
            late = confirming(other, origin=f"n{number}", identity=number << 40)
            assert "a newer connection publishes as producer 'p'" in refusal(send(late, 9))
        last = confirming(other, origin="n5", identity=5 << 40)
        assert send(last, 4, 5) == [methods.BasicAck(2, True)]
        assert held(other) == [b"1", b"2", b"3", b"4", b"5"]


def test_two_channels_of_a_connection_are_one_producer() -> None:
    world = prepared()
    peer = confirming(world)
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=2)
    send(peer, 1)
    peer.publish("", "q", b"2", numbered(2), channel=2)
    assert send(peer, 2, 3) == [methods.BasicAck(3, True)]
    assert held(world) == [b"1", b"2", b"3"]


def test_names_may_be_long() -> None:
    world = prepared()
    peer = confirming(world)
    send(peer, 1, 5, name="n" * 255)
    assert "number 3 of producer 'nnn" in refusal(send(peer, 3, name="n" * 255))


def test_malformed_headers_of_a_producer_are_refused() -> None:
    world = prepared()
    wrong: list[dict[str, Any]] = [
        {"number": -1},
        {"number": Int32(-1)},
        {"number": "1"},
        {"number": 1.0},
        {"number": True},
        {"number": 1, "name": ""},
        {"number": 1, "name": "n" * 256},
        {"number": 1, "name": 5},
        {"number": 1, "name": b"\xff"},
    ]
    for properties in wrong:
        answers = world.peer().publish("", "q", b"x", numbered(**properties)).heard()
        assert refusal(answers).startswith("PRECONDITION_FAILED - invalid x-"), properties
    for number in (Int32(7), UInt8(7), 7):
        world.peer().publish("", "q", b"7", numbered(number))
    # One of the two alone is no business of the broker's.
    for headers in ({"x-producer": "p"}, {"x-sequence": 1}, {"x-sequence": 1}):
        world.peer().publish("", "q", b"plain", Properties(headers=headers))
    assert held(world) == [b"7", b"plain", b"plain", b"plain"]


def test_a_message_that_may_not_be_published_is_not_recorded() -> None:
    world = prepared()
    world.admit("ann", write="other")
    peer = world.peer("ann")
    (close,) = send(peer, 1)
    assert isinstance(close, methods.ChannelClose) and close.reply_code == 403
    peer = world.peer()
    peer.publish("missing", "q", b"x", numbered(1))
    assert len(world.broker.state.named_producers) == 0
    send(confirming(world), 1)
    assert held(world) == [b"1"]


# Messages that are no publishes of the producer, though they have its headers.


@pytest.mark.proves("R25")
def test_dead_letters_are_no_publishes_of_their_producer() -> None:
    world = prepared()
    peer = world.peer()
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 100}
    peer.declare("short", durable=True, arguments=letters)
    publisher = confirming(world)
    send(publisher, 1, 2, queue="short")
    world.pass_time(200)
    assert held(world) == [b"1", b"2"]
    assert send(publisher, 1, 3) == [methods.BasicAck(4, True)]
    assert held(world) == [b"3"]


def test_delayed_messages_are_recorded_when_they_are_published() -> None:
    world = prepared()
    peer = world.peer()
    arguments = {"x-delayed-type": "fanout"}
    peer.call(
        methods.ExchangeDeclare("later", "x-delayed-message", durable=True, arguments=arguments),
        expect=methods.ExchangeDeclareOk,
    )
    peer.call(methods.QueueBind("q", "later", ""), expect=methods.QueueBindOk)
    publisher = confirming(world)
    for _ in range(2):
        publisher.publish("later", "", b"1", numbered(1, **{"x-delay": 100}))
    world.pass_time(200)
    assert held(world) == [b"1"]
    assert publisher.publish("later", "", b"1", numbered(1, **{"x-delay": 100})).heard() != []
    world.pass_time(200)
    assert held(world) == []


def test_copies_for_other_brokers_are_made_once() -> None:
    world = prepared()
    n3 = Elsewhere(world, "n3", ("amq.direct", "k"))
    publisher = confirming(world)
    for number in (1, 1, 2):
        publisher.publish("amq.direct", "k", b"%d" % number, numbered(number))
    assert n3.trunk.bodies() == [b"1", b"2"]


# Bounds.


@pytest.mark.proves("R25")
def test_the_count_and_the_age_of_producers_are_bounded() -> None:
    world = prepared(producers_max=2, producer_age_ms=1000)
    peer = confirming(world)
    for name in ("a", "b", "c"):
        send(peer, 1, name=name)
    assert [producer.name for producer in world.broker.state.named_producers] == ["b", "c"]
    assert world.broker.deduplication.forgotten_count == 1
    # A forgotten producer is a new one.
    send(peer, 1, name="a")
    assert held(world) == [b"1"] * 4
    world.now_ms = NOW_MS + 1001
    send(peer, 1, name="d")
    assert [producer.name for producer in world.broker.state.named_producers] == ["d"]
    peer.leave()
    # Another broker forgets what the log says, whatever its own limits are.
    other = World()
    for index, entry in enumerate(world.entries, start=1):
        other.broker.apply(index, 1, entry)
    for client in list(world.broker.clients):
        world.broker.disconnect(client, world.now_ms)
    world.run([])
    assert durable_view(other.broker)["producers"] == durable_view(world.broker)["producers"]


def test_numbers_are_no_matter_of_configuration() -> None:
    world = prepared()
    heard: list[bytes] = []
    world.broker.on_command = heard.append
    send(confirming(world), 1)
    assert heard == []
    other = World()
    other.broker.on_command = heard.append
    other.broker.apply(1, 1, world.entries[-1])
    assert heard == []
    assert len(other.broker.state.named_producers) == 1
