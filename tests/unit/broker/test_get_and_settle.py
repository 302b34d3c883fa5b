"""basic.get, settlements and recover."""

import pytest

from pandomq import methods
from tests.unit.broker.conversation import Peer, World


def three_messages() -> Peer:
    peer = World().peer()
    peer.declare("q")
    for body in (b"1", b"2", b"3"):
        peer.publish("", "q", body)
    return peer


def test_get_returns_the_number_of_messages_left() -> None:
    peer = three_messages()
    for tag, left in ((1, 2), (2, 1), (3, 0)):
        got = peer.get("q", no_ack=False)
        assert got is not None
        assert got.method == methods.BasicGetOk(tag, False, "", "q", left)
    assert peer.get("q") is None
    peer.send(methods.BasicAck(0, True))
    assert peer.world.broker.engine.held_messages == 0


def test_requeued_messages_keep_their_places() -> None:
    peer = three_messages()
    for _ in range(3):
        peer.get("q", no_ack=False)
    peer.send(methods.BasicReject(2, True), methods.BasicNack(3, False, True), methods.BasicReject(1, True))
    bodies = [got.body for got in (peer.get("q") for _ in range(3)) if got is not None]
    assert bodies == [b"1", b"2", b"3"]


def test_recover_gives_everything_back_as_redelivered() -> None:
    peer = three_messages()
    peer.get("q", no_ack=False)
    peer.call(methods.BasicRecover(True), expect=methods.BasicRecoverOk)
    assert peer.send(methods.BasicRecoverAsync(True)).heard() == []
    got = peer.get("q")
    assert got is not None
    assert got.method == methods.BasicGetOk(2, True, "", "q", 2)


@pytest.mark.parametrize("method", [methods.BasicRecover(False), methods.BasicRecoverAsync(False)])
def test_recover_to_the_same_consumer_is_not_implemented(method: methods.Method) -> None:
    peer = World().peer()
    peer.send(method)
    assert str(peer.fault()) == "540 NOT_IMPLEMENTED - requeue=false"


@pytest.mark.parametrize(
    "method",
    [
        methods.BasicAck(7),
        methods.BasicAck(0),
        methods.BasicAck(7, True),
        methods.BasicNack(7, False, True),
        methods.BasicReject(7, False),
    ],
)
def test_unknown_tags_close_the_channel(method: methods.BasicAck | methods.BasicNack | methods.BasicReject) -> None:
    peer = three_messages()
    peer.get("q", no_ack=False)
    close = peer.refused(method)
    assert (close.reply_code, close.reply_text) == (
        406,
        f"PRECONDITION_FAILED - unknown delivery tag {method.delivery_tag}",
    )


def test_acking_twice_closes_the_channel_and_all_with_nothing_does_not() -> None:
    peer = three_messages()
    peer.get("q", no_ack=False)
    peer.send(methods.BasicAck(1), methods.BasicAck(0, True))
    assert peer.heard() == []
    assert peer.refused(methods.BasicAck(1)).reply_code == 406


def test_get_from_a_missing_queue_is_refused() -> None:
    close = World().peer().refused(methods.BasicGet("q"))
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no queue 'q' in vhost '/'")


def test_deliveries_are_counted_where_they_are_limited() -> None:
    peer = World().peer()
    peer.declare("dead")
    arguments = {
        "x-queue-type": "quorum",
        "x-delivery-limit": 2,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish("", "q", b"poison")
    for count in (None, 1, 2):
        got = peer.get("q", no_ack=False)
        assert got is not None
        assert got.properties is not None
        assert (got.properties.headers or {}).get("x-delivery-count") == count
        peer.send(methods.BasicNack(0, True, True))
    assert peer.get("q") is None
    dead = peer.get("dead")
    assert dead is not None
    assert dead.properties is not None
    assert dead.properties.headers is not None
    assert dead.properties.headers["x-death"][0]["reason"] == "delivery_limit"
