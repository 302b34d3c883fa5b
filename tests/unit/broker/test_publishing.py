"""Publishes: faults, returns, and the properties the broker looks at."""

from pathlib import Path

import pytest

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World


def ready(**traits: object) -> Peer:
    peer = World().peer()
    peer.declare("q", **traits)
    return peer


def failure(peer: Peer) -> tuple[int, str]:
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert (close.failed_class_id, close.failed_method_id) == (60, 40)
    return close.reply_code, close.reply_text


def test_mandatory_messages_without_a_queue_come_back_before_their_confirm() -> None:
    peer = ready()
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.publish("amq.direct", "nobody", b"back", Properties(message_id="m"), mandatory=True)
    returned, confirm = peer.hear()
    assert returned.method == methods.BasicReturn(312, "NO_ROUTE", "amq.direct", "nobody")
    assert (returned.body, returned.properties) == (b"back", Properties(message_id="m"))
    assert confirm.method == methods.BasicAck(1, False)
    peer.publish("amq.direct", "nobody").publish("", "q", mandatory=True)
    assert peer.heard() == [methods.BasicAck(2, False), methods.BasicAck(3, False)]


def test_a_message_comes_back_before_the_close_for_a_fault_in_the_same_read() -> None:
    peer = ready()
    peer.say_publish("", "nobody", b"back", mandatory=True).say(methods.BasicAck(77, False)).flush()
    returned, close = peer.hear()
    assert (type(returned.method), returned.body) == (methods.BasicReturn, b"back")
    assert isinstance(close.method, methods.ChannelClose)


def test_a_message_comes_back_before_the_end_of_the_connection_in_the_same_read() -> None:
    """Only at the root: a front ends the connection without asking the root what came back."""
    peer = ready()
    peer.say_publish("", "nobody", b"back", mandatory=True).say_publish("", "q", immediate=True).flush()
    (returned,) = peer.hear()
    assert (type(returned.method), returned.body) == (methods.BasicReturn, b"back")
    assert peer.fault().reply_code == 540


def test_a_big_return_comes_in_several_frames() -> None:
    peer = ready()
    body = bytes(range(256)) * 100
    peer.publish("", "nobody", body, mandatory=True)
    (returned,) = peer.hear()
    assert returned.body == body


def test_immediate_is_not_implemented() -> None:
    peer = ready()
    peer.publish("", "q", immediate=True)
    assert str(peer.fault()) == "540 NOT_IMPLEMENTED - immediate=true"
    assert (peer.fault().class_id, peer.fault().method_id) == (60, 40)


def test_a_message_beyond_the_limit_is_refused() -> None:
    world = World(limits=BrokerLimits(message_bytes_max=100))
    peer = world.peer()
    peer.declare("q")
    peer.publish("", "q", b"x" * 100)
    peer.publish("", "q", b"x" * 101)
    assert failure(peer) == (
        406,
        "PRECONDITION_FAILED - message size 101 is larger than configured max size 100",
    )
    peer.reopen()
    assert peer.counts("q") == (1, 0)


def test_a_user_id_must_be_true() -> None:
    peer = ready()
    peer.publish("", "q", b"", Properties(user_id="guest"))
    assert peer.counts("q") == (1, 0)
    peer.publish("", "q", b"", Properties(user_id="bob"))
    assert failure(peer) == (
        406,
        "PRECONDITION_FAILED - user_id property set to 'bob' but authenticated user was 'guest'",
    )


@pytest.mark.parametrize(
    ("expiration", "wrong"),
    [
        ("abc", "no_integer"),
        ("", "no_integer"),
        (" 5", "no_integer"),
        ("-", "no_integer"),
        ("12x", '{leftover_string,"x"}'),
        ("1.5", '{leftover_string,".5"}'),
        ("-1", "{value_negative,-1}"),
        ("99999999999999999999", "{value_too_large,99999999999999999999}"),
    ],
)
def test_an_expiration_must_be_a_number(expiration: str, wrong: str) -> None:
    peer = ready()
    peer.publish("", "q", b"", Properties(expiration=expiration))
    assert failure(peer) == (406, f"PRECONDITION_FAILED - invalid expiration '{expiration}': {wrong}")


def test_an_expiration_may_have_a_sign() -> None:
    peer = ready()
    peer.publish("", "q", b"", Properties(expiration="+50", correlation_id="c", type="t"))
    peer.world.pass_time(49)
    assert peer.counts("q") == (1, 0)
    peer.world.pass_time(1)
    assert peer.counts("q") == (0, 0)


def test_cc_and_bcc_are_further_routing_keys() -> None:
    peer = ready()
    for name in ("cc", "bcc"):
        peer.declare(name)
    headers = {"CC": ["cc", "q"], "BCC": ["bcc"], "mine": 1}
    peer.publish("", "q", b"copied", Properties(headers=headers))
    for name in ("q", "cc", "bcc"):
        got = peer.get(name)
        assert got is not None
        assert got.properties is not None
        assert got.properties.headers == {"CC": ["cc", "q"], "mine": 1}
        assert got.method.routing_key == "q"  # type: ignore[attr-defined]
        assert peer.get(name) is None
    peer.publish("", "q", b"", Properties(headers={"CC": "q"}))
    assert failure(peer) == (
        406,
        'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}',
    )


def test_queues_that_come_and_go_are_found_and_missed() -> None:
    peer = ready()
    peer.publish("", "r")
    peer.declare("r")
    peer.publish("", "r")
    assert peer.counts("r") == (1, 0)
    peer.call(methods.QueueDelete("r"), expect=methods.QueueDeleteOk)
    peer.publish("", "r", mandatory=True)
    assert isinstance(peer.heard()[0], methods.BasicReturn)


def test_the_plan_of_a_route_is_remembered() -> None:
    peer = ready()
    routes = peer.client.session.routes
    peer.publish("", "q")
    assert len(routes) == 1
    peer.publish("", "q", b"", Properties(user_id="guest"))
    assert len(routes) == 1
    assert peer.world.peer().client.session.routes is routes
    peer.world.admit("bob")
    assert peer.world.connect(user="bob").client.session.routes is not routes


def test_refused_messages_are_nacked() -> None:
    peer = ready(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    for _ in range(3):
        peer.say_publish("", "q")
    peer.flush()
    assert peer.heard() == [
        methods.BasicAck(1, False),
        methods.BasicNack(2, False, False),
        methods.BasicNack(3, False, False),
    ]


def test_bursts_are_confirmed_together() -> None:
    peer = ready()
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    assert peer.send(methods.ConfirmSelect(no_wait=True)).heard() == []
    for _ in range(10):
        peer.say_publish("", "q")
    peer.flush()
    assert peer.heard() == [methods.BasicAck(10, True)]


def test_random_properties_do_not_break_the_broker() -> None:
    peer = ready()
    body = Path(__file__).read_bytes()
    peer.publish("", "q", body, Properties(headers={"x-delay": "soon", "x-death": 5, "a": {"b": [None, 1.5]}}))
    got = peer.get("q")
    assert got is not None
    assert got.body == body
