"""Every permission against every method: what each asks for, who is refused, and in which words."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pandomq import methods
from pandomq.broker.administration.permissions import Right
from pandomq.broker.methods.dispatch import HANDLERS
from pandomq.methods import Method
from tests.unit.broker.conversation import Peer, World


class Ask(NamedTuple):
    right: Right
    kind: str
    name: str

    def refusal(self, user: str) -> str:
        what = f"{self.right.name.lower()} access to {self.kind} '{self.name}'"
        return f"ACCESS_REFUSED - {what} in vhost '/' refused for user '{user}'"


def configure(kind: str, name: str) -> Ask:
    return Ask(Right.CONFIGURE, kind, name)


def write(kind: str, name: str) -> Ask:
    return Ask(Right.WRITE, kind, name)


def read(kind: str, name: str) -> Ask:
    return Ask(Right.READ, kind, name)


AE = {"alternate-exchange": "fx"}
DLX = {"x-dead-letter-exchange": "fx"}

ASKING: list[tuple[Method, list[Ask]]] = [
    (methods.QueueDeclare("new"), [configure("queue", "new")]),
    (methods.QueueDeclare("q"), [configure("queue", "q")]),
    (methods.QueueDeclare("new", exclusive=True), [configure("queue", "new")]),
    (
        methods.QueueDeclare("new", arguments=DLX),
        [configure("queue", "new"), read("queue", "new"), write("exchange", "fx")],
    ),
    (
        methods.QueueDeclare("new", exclusive=True, arguments={"x-dead-letter-exchange": ""}),
        [configure("queue", "new"), read("queue", "new"), write("exchange", "amq.default")],
    ),
    (methods.QueueDelete("q"), [configure("queue", "q")]),
    (methods.QueueDelete("missing"), [configure("queue", "missing")]),
    (methods.QueuePurge("q"), [read("queue", "q")]),
    (methods.QueueBind("q", "tx", "k"), [write("queue", "q"), read("exchange", "tx")]),
    (methods.QueueUnbind("q", "tx", "k"), [write("queue", "q"), read("exchange", "tx")]),
    (methods.ExchangeDeclare("new", "direct"), [configure("exchange", "new")]),
    (methods.ExchangeDeclare("fx", "fanout"), [configure("exchange", "fx")]),
    (
        methods.ExchangeDeclare("new", "direct", arguments=AE),
        [configure("exchange", "new"), read("exchange", "new"), write("exchange", "fx")],
    ),
    (methods.ExchangeDelete("fx"), [configure("exchange", "fx")]),
    (methods.ExchangeBind("fx", "tx", "k"), [write("exchange", "fx"), read("exchange", "tx")]),
    (methods.ExchangeUnbind("fx", "tx", "k"), [write("exchange", "fx"), read("exchange", "tx")]),
    (methods.BasicConsume("q", "t"), [read("queue", "q")]),
    (methods.BasicGet("q"), [read("queue", "q")]),
]

# Any right on the object allows a check of its existence; the refusal names the last right that was tried.
ASKING_ANY: list[tuple[Method, Ask]] = [
    (methods.QueueDeclare("q", passive=True), configure("queue", "q")),
    (methods.ExchangeDeclare("fx", passive=True), configure("exchange", "fx")),
]

ASKING_NOTHING: list[Method] = [
    methods.BasicQos(0, 1, False),
    methods.BasicCancel("t"),
    methods.BasicCancelOk("t"),
    methods.BasicRecover(True),
    methods.BasicRecoverAsync(True),
    methods.ConfirmSelect(),
    methods.TxSelect(),
    methods.ChannelFlow(True),
    methods.AccessRequest("", False, False, True, True, True),
    methods.BasicConsume("amq.rabbitmq.reply-to", "t", no_ack=True),
    methods.QueueDeclare("amq.rabbitmq.reply-to"),
    methods.ChannelClose(200, "", 0, 0),
]

ON_ANY_CHANNEL = {methods.ChannelOpen, methods.TxCommit, methods.TxRollback, methods.BasicSettle, methods.BasicHeld}
"""An error at this place, whoever asks."""


def scene() -> World:
    world = World()
    guest = world.peer()
    guest.declare("q")
    for name, kind in (("fx", "fanout"), ("tx", "topic")):
        guest.call(methods.ExchangeDeclare(name, kind), expect=methods.ExchangeDeclareOk)
    guest.call(methods.ExchangeBind("fx", "tx", "k"), expect=methods.ExchangeBindOk)
    guest.call(methods.QueueBind("q", "tx", "k"), expect=methods.QueueBindOk)
    return world


def exactly(asks: list[Ask], right: Right) -> str:
    names = [ask.name for ask in asks if ask.right is right]
    return f"^({'|'.join(names)})$" if names else ""


def peer_with(world: World, asks: list[Ask]) -> Peer:
    """A user with these rights and no others."""
    world.admit("bob", *(exactly(asks, right) for right in Right))
    return world.peer("bob")


@pytest.mark.parametrize(("method", "asks"), ASKING)
def test_these_rights_are_enough(method: Method, asks: list[Ask]) -> None:
    heard = peer_with(scene(), asks).send(method).heard()
    assert not any(isinstance(answer, methods.ChannelClose) for answer in heard), heard


@pytest.mark.parametrize(
    ("method", "asks", "missing"), [(method, asks, missing) for method, asks in ASKING for missing in asks]
)
def test_each_permission_of_a_method_is_needed(method: Method, asks: list[Ask], missing: Ask) -> None:
    world = scene()
    # All rights on everything else.
    world.admit("bob", *(f"^(?!{missing.name}$)" if right is missing.right else ".*" for right in Right))
    peer = world.peer("bob")
    close = peer.refused(method)
    assert (close.reply_code, close.reply_text) == (403, missing.refusal("bob"))
    entries = len(world.entries)
    peer.send(methods.BasicQos(0, 1, False))
    assert len(world.entries) == entries


@pytest.mark.parametrize(("method", "ask"), ASKING_ANY)
def test_any_right_is_enough_to_ask_whether_something_is_there(method: Method, ask: Ask) -> None:
    for right in Right:
        heard = peer_with(scene(), [Ask(right, ask.kind, ask.name)]).send(method).heard()
        assert not any(isinstance(answer, methods.ChannelClose) for answer in heard), heard
    close = peer_with(scene(), []).refused(method)
    assert (close.reply_code, close.reply_text) == (403, ask.refusal("bob"))


@pytest.mark.parametrize("method", ASKING_NOTHING)
def test_methods_about_the_channel_need_no_right(method: Method) -> None:
    heard = peer_with(scene(), []).send(method).heard()
    assert not any(isinstance(answer, methods.ChannelClose) for answer in heard), heard


def test_no_method_is_missing_here() -> None:
    asking = {type(method) for method, _ in ASKING} | {type(method) for method, _ in ASKING_ANY}
    assert asking | {type(method) for method in ASKING_NOTHING} | ON_ANY_CHANNEL == set(HANDLERS)


def test_a_name_that_the_broker_chooses_is_asked_for_as_well() -> None:
    world = World()
    world.admit("bob", "^amq\\.gen-", "", "^amq\\.gen-")
    bob = world.peer("bob")
    name = bob.declare("").queue
    assert bob.declare("", exclusive=True).queue != name
    assert bob.get(name) is None
    world.admit("eve", "^mine", "", "")
    close = world.peer("eve").refused(methods.QueueDeclare(""))
    assert close.reply_text.startswith("ACCESS_REFUSED - configure access to queue 'amq.gen-")


def test_an_owner_needs_rights_on_its_private_queue() -> None:
    world = World()
    world.admit("bob", ".*", ".*", "^other$")
    bob = world.peer("bob")
    bob.declare("mine", exclusive=True)
    assert bob.refused(methods.BasicGet("mine")).reply_code == 403


@pytest.mark.parametrize(("exchange", "known_as"), [("fx", "fx"), ("", "amq.default"), ("missing", "missing")])
def test_publishing(exchange: str, known_as: str) -> None:
    world = scene()
    world.admit("bob", ".*", f"^(?!{known_as}$)", ".*")
    bob = world.peer("bob").publish(exchange, "q")
    refusal = write("exchange", known_as).refusal("bob")
    assert bob.heard() == [methods.ChannelClose(403, refusal, 60, 40)]


def test_publishing_with_the_one_right_it_needs() -> None:
    world = scene()
    bob = peer_with(world, [write("exchange", "amq.default")])
    bob.publish("", "q", b"1").publish("", "q", b"2")
    assert bob.heard() == []
    assert world.peer().counts() == (2, 0)


def test_publishing_in_a_transaction_asks_at_once() -> None:
    bob = peer_with(scene(), [])
    bob.call(methods.TxSelect(), expect=methods.TxSelectOk)
    bob.publish("fx", "k")
    assert [type(method) for method in bob.heard()] == [methods.ChannelClose]
