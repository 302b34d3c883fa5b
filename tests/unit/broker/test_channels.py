"""Channels: opening, closing from either side, and what is said on one that is not open."""

import pytest

from pandomq import methods
from pandomq.errors import ConnectionFault
from tests.unit.broker.conversation import World


def test_a_number_can_be_used_again_right_after_close_ok() -> None:
    peer = World().peer()
    for _ in range(3):
        peer.call(methods.ChannelClose(200, "bye", 0, 0), expect=methods.ChannelCloseOk)
        peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)


def test_any_number_will_do_and_only_how_many_counts() -> None:
    peer = World().connect(channel_max=2)
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=65535)
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=7)
    peer.send(methods.ChannelOpen(), channel=1)
    fault = peer.fault()
    assert fault.reply_code == 530
    assert fault.reply_text == (
        "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    )


def test_a_second_open_ends_the_connection() -> None:
    peer = World().peer()
    peer.send(methods.ChannelOpen())
    assert str(peer.fault()) == "504 CHANNEL_ERROR - second 'channel.open' seen"
    assert (peer.fault().class_id, peer.fault().method_id) == (20, 10)


@pytest.mark.parametrize(
    "method",
    [methods.QueueDeclare("q"), methods.BasicAck(1), methods.ChannelClose(200, "", 0, 0), methods.ChannelCloseOk()],
)
def test_a_channel_must_be_opened_first(method: methods.Method) -> None:
    peer = World().connect()
    peer.send(method)
    assert str(peer.fault()) == "504 CHANNEL_ERROR - expected 'channel.open'"
    assert (peer.fault().class_id, peer.fault().method_id) == (method.class_id, method.method_id)


def test_publishing_on_an_unopened_channel_ends_the_connection() -> None:
    peer = World().peer()
    peer.publish("", "q", channel=2)
    assert str(peer.fault()) == "504 CHANNEL_ERROR - expected 'channel.open'"
    assert (peer.fault().class_id, peer.fault().method_id) == (60, 40)


def test_nothing_counts_after_a_connection_fault() -> None:
    peer = World().peer()
    peer.say(methods.ChannelFlow(False)).say(methods.QueueDeclare("later")).flush()
    peer.send(methods.QueueDeclare("even later"))
    assert not peer.world.broker.state.vhosts["/"].queues
    assert str(peer.fault()) == "540 NOT_IMPLEMENTED - active=false"
    assert peer.hear() == []


def test_flow_true_is_answered() -> None:
    World().peer().call(methods.ChannelFlow(True), expect=methods.ChannelFlowOk)


def test_an_access_request_gets_a_ticket() -> None:
    request = methods.AccessRequest("/data", False, True, True, True, True)
    assert World().peer().call(request, expect=methods.AccessRequestOk).ticket == 1


@pytest.mark.parametrize("method", [methods.QueueDeclareOk("q", 0, 0), methods.BasicConsumeOk("t")])
def test_methods_that_only_a_broker_sends_are_refused(method: methods.Method) -> None:
    peer = World().peer()
    peer.send(method)
    assert str(peer.fault()) == "503 COMMAND_INVALID - unimplemented method"


def test_a_closed_channel_is_deaf_until_the_client_agrees() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.say(methods.QueueDeclare("missing", passive=True)).say(methods.QueueDeclare("r")).say_publish("", "q").flush()
    (close,) = peer.heard()
    assert close == methods.ChannelClose(404, "NOT_FOUND - no queue 'missing' in vhost '/'", 50, 10)
    peer.publish("", "q").send(methods.BasicAck(9), methods.QueueDeclare("s"), methods.BasicGet("q"))
    assert peer.heard() == []
    # Both sides may close at the same time.
    peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    peer.reopen()
    assert peer.counts("q") == (0, 0)
    assert set(peer.world.broker.state.vhosts["/"].queues) == {"q"}


def test_a_fault_requeues_unacked_messages_and_ends_consumers_at_once() -> None:
    world = World()
    peer, other = world.peer(), world.peer()
    peer.declare("q")
    peer.publish("", "q", b"1").publish("", "q", b"2")
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    peer.send(methods.BasicAck(77))
    assert peer.heard() == [methods.ChannelClose(406, "PRECONDITION_FAILED - unknown delivery tag 77", 60, 80)]
    assert other.counts("q") == (2, 0)
    got = other.get("q")
    assert got is not None
    assert (got.body, got.method.redelivered) == (b"1", True)  # type: ignore[attr-defined]


def test_the_rest_of_a_run_is_skipped_on_a_channel_that_failed_but_not_on_others() -> None:
    peer = World().peer()
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=2)
    peer.declare("q")
    peer.say_publish("missing", "q").say_publish("", "q", b"lost").say_publish("", "q", b"kept", channel=2).flush()
    (close,) = peer.hear()
    assert close.channel == 1
    assert close.method == methods.ChannelClose(404, "NOT_FOUND - no exchange 'missing' in vhost '/'", 60, 40)
    peer.reopen()
    assert peer.counts("q") == (1, 0)


def test_a_client_that_leaves_gives_everything_back() -> None:
    world = World()
    peer, other = world.peer(), world.peer()
    other.declare("q")
    other.publish("", "q")
    peer.declare("mine", exclusive=True)
    peer.consume("q")
    peer.leave()
    peer.leave()
    assert other.counts("q") == (1, 0)
    assert set(world.broker.state.vhosts["/"].queues) == {"q"}
    assert list(world.broker.clients) == [other.client]


def test_a_connection_to_a_missing_vhost_is_refused() -> None:
    with pytest.raises(ConnectionFault, match="530 NOT_ALLOWED - vhost /nope not found"):
        World().connect(vhost="/nope")
