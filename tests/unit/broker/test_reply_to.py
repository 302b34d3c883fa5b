"""Direct reply-to."""

import pytest

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World

PSEUDO = "amq.rabbitmq.reply-to"


def asking(world: World) -> Peer:
    peer = world.peer()
    peer.call(methods.BasicConsume(PSEUDO, "replies", no_ack=True), expect=methods.BasicConsumeOk)
    return peer


def asked(world: World, peer: Peer) -> str:
    """The address that a server sees in a request."""
    server = world.peer()
    server.declare("requests")
    peer.publish("", "requests", b"?", Properties(reply_to=PSEUDO, correlation_id="1", expiration="5000"))
    request = server.get("requests")
    assert request is not None
    assert request.properties is not None
    assert (request.properties.correlation_id, request.properties.expiration) == ("1", "5000")
    assert request.properties.reply_to is not None
    return request.properties.reply_to


def test_question_and_answer() -> None:
    world = World()
    peer = asking(world)
    address = asked(world, peer)
    assert address.startswith(f"{PSEUDO}.")
    server = world.peer()
    assert server.declare(address, passive=True) == methods.QueueDeclareOk(address, 0, 1)
    server.publish("", address, b"!", mandatory=True)
    assert server.heard() == []
    (answer,) = peer.hear()
    assert answer.method == methods.BasicDeliver("replies", 1, False, "", address)
    assert answer.body == b"!"


def test_an_address_ends_with_its_consumer() -> None:
    world = World()
    peer = asking(world)
    address = asked(world, peer)
    server = world.peer()
    peer.call(methods.BasicCancel("replies"), expect=methods.BasicCancelOk)
    server.publish("", address, b"!", mandatory=True)
    assert isinstance(server.heard()[0], methods.BasicReturn)
    assert server.refused(methods.QueueDeclare(address, passive=True)).reply_code == 404
    # Another one can follow on the same channel, under another address.
    peer.call(methods.BasicConsume(PSEUDO, no_ack=True), expect=methods.BasicConsumeOk)
    assert asked(world, peer) != address


@pytest.mark.parametrize("by", ["channel", "connection", "fault"])
def test_an_address_ends_with_its_channel(by: str) -> None:
    world = World()
    peer = asking(world)
    address = asked(world, peer)
    if by == "channel":
        peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    elif by == "connection":
        peer.leave()
    else:
        peer.refused(methods.BasicGet("missing"))
    assert world.peer().refused(methods.QueueDeclare(address)).reply_code == 404
    assert not world.broker.state.vhosts["/"].reply_queues


def test_methods_that_do_not_fit_direct_replies_are_refused() -> None:
    world = World()
    peer = world.peer()
    texts = [
        (methods.BasicConsume(PSEUDO), "PRECONDITION_FAILED - reply consumer cannot acknowledge"),
        (methods.BasicGet(PSEUDO), f"NOT_FOUND - no queue '{PSEUDO}' in vhost '/'"),
        (methods.QueueDeclare(f"{PSEUDO}.x", passive=True), f"NOT_FOUND - no queue '{PSEUDO}.x' in vhost '/'"),
        (
            methods.QueueBind(f"{PSEUDO}.x", "amq.direct"),
            "ACCESS_REFUSED - cannot bind or unbind to a volatile (direct reply-to) queue",
        ),
    ]
    for method, text in texts:
        assert peer.refused(method).reply_text == text
    assert peer.declare(PSEUDO, passive=True) == methods.QueueDeclareOk(PSEUDO, 0, 1)
    peer.publish("", "q", b"", Properties(reply_to=PSEUDO))
    assert peer.heard() == [
        methods.ChannelClose(406, "PRECONDITION_FAILED - fast reply consumer does not exist", 60, 40)
    ]
    peer.reopen()
    peer.call(methods.BasicConsume(PSEUDO, no_ack=True), expect=methods.BasicConsumeOk)
    assert peer.refused(methods.BasicConsume(PSEUDO, no_ack=True)).reply_text == (
        "PRECONDITION_FAILED - reply consumer already set"
    )


def test_other_addresses_are_left_alone() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    peer.publish("", "q", b"", Properties(reply_to=f"{PSEUDO}.another"))
    got = peer.get("q")
    assert got is not None
    assert got.properties == Properties(reply_to=f"{PSEUDO}.another")


def test_reply_queues_are_in_no_listing() -> None:
    world = World()
    asking(world)
    assert not world.broker.state.vhosts["/"].queues


def test_a_consumer_too_many_leaves_no_address_behind() -> None:
    world = World(limits=BrokerLimits(consumers_max=1))
    asking(world)
    addresses = len(world.broker.state.vhosts["/"].reply_queues)
    assert world.peer().refused(methods.BasicConsume(PSEUDO, "more", no_ack=True)).reply_code == 406
    assert len(world.broker.state.vhosts["/"].reply_queues) == addresses
