"""Class exchange: declare, delete, bind, unbind."""

from pandomq import methods
from tests.unit.broker.conversation import World

DEFAULT = "ACCESS_REFUSED - operation not permitted on the default exchange"


def test_declare_twice_and_differently() -> None:
    peer = World().peer()
    for _ in range(2):
        peer.call(methods.ExchangeDeclare("x", "topic"), expect=methods.ExchangeDeclareOk)
    close = peer.refused(methods.ExchangeDeclare("x", "direct"))
    assert close.reply_text == (
        "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': "
        "received 'direct' but current is 'topic'"
    )
    peer.call(methods.ExchangeDeclare("x", passive=True), expect=methods.ExchangeDeclareOk)
    close = peer.refused(methods.ExchangeDeclare("y", passive=True))
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no exchange 'y' in vhost '/'")
    assert peer.send(methods.ExchangeDeclare("z", "fanout", no_wait=True)).heard() == []


def test_names() -> None:
    peer = World().peer()
    for method in (
        methods.ExchangeDeclare("", "direct"),
        methods.ExchangeDeclare("", passive=True),
        methods.ExchangeDelete(""),
        methods.ExchangeBind("", "amq.direct"),
        methods.ExchangeBind("amq.direct", ""),
        methods.ExchangeUnbind("", "amq.direct"),
    ):
        close = peer.refused(method)
        assert (close.reply_code, close.reply_text) == (403, DEFAULT)
    close = peer.refused(methods.ExchangeDeclare("amq.mine", "direct"))
    assert close.reply_text == "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'"
    close = peer.refused(methods.ExchangeDelete("amq.direct"))
    assert close.reply_text == "ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed"
    peer.call(methods.ExchangeDeclare("amq.direct", "direct", durable=True), expect=methods.ExchangeDeclareOk)
    close = peer.refused(methods.ExchangeDeclare("x", "strange"))
    assert (close.reply_code, close.reply_text) == (406, "PRECONDITION_FAILED - unknown exchange type 'strange'")


def test_delete() -> None:
    peer = World().peer()
    peer.call(methods.ExchangeDelete("x"), expect=methods.ExchangeDeleteOk)
    peer.call(methods.ExchangeDeclare("x", "direct"), expect=methods.ExchangeDeclareOk)
    peer.declare("q")
    peer.call(methods.QueueBind("q", "x", "k"), expect=methods.QueueBindOk)
    close = peer.refused(methods.ExchangeDelete("x", if_unused=True))
    assert (close.reply_code, close.reply_text) == (406, "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use")
    peer.call(methods.ExchangeDelete("x"), expect=methods.ExchangeDeleteOk)
    peer.publish("x", "k")
    assert peer.heard() == [methods.ChannelClose(404, "NOT_FOUND - no exchange 'x' in vhost '/'", 60, 40)]


def test_an_exchange_routes_to_the_exchanges_bound_to_it() -> None:
    peer = World().peer()
    peer.call(methods.ExchangeDeclare("a", "direct"), expect=methods.ExchangeDeclareOk)
    peer.call(methods.ExchangeDeclare("b", "fanout", internal=True), expect=methods.ExchangeDeclareOk)
    peer.declare("q")
    peer.call(methods.QueueBind("q", "b"), expect=methods.QueueBindOk)
    peer.call(methods.ExchangeBind("b", "a", "k"), expect=methods.ExchangeBindOk)
    peer.publish("a", "k")
    got = peer.get("q")
    assert got is not None
    assert (got.method.exchange, got.method.routing_key) == ("a", "k")  # type: ignore[attr-defined]
    for _ in range(2):
        peer.call(methods.ExchangeUnbind("b", "a", "k"), expect=methods.ExchangeUnbindOk)
    peer.publish("a", "k")
    assert peer.counts("q") == (0, 0)
    peer.publish("b", "k")
    assert peer.heard() == [
        methods.ChannelClose(403, "ACCESS_REFUSED - cannot publish to internal exchange 'b' in vhost '/'", 60, 40)
    ]


def test_bindings_need_both_ends() -> None:
    peer = World().peer()
    close = peer.refused(methods.ExchangeBind("x", "amq.direct"))
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no exchange 'x' in vhost '/'")
    assert peer.refused(methods.ExchangeBind("amq.direct", "x")).reply_code == 404
    peer.call(methods.ExchangeUnbind("x", "amq.direct"), expect=methods.ExchangeUnbindOk)


def test_auto_delete_exchanges_go_with_their_last_binding_and_take_others_along() -> None:
    world = World()
    peer = world.peer()
    exchanges = world.broker.state.vhosts["/"].router.exchanges
    for name in ("a", "b"):
        peer.call(methods.ExchangeDeclare(name, "fanout", auto_delete=True), expect=methods.ExchangeDeclareOk)
    peer.declare("q")
    peer.declare("mine", exclusive=True)
    peer.call(methods.ExchangeBind("b", "a"), expect=methods.ExchangeBindOk)
    peer.call(methods.QueueBind("q", "b"), expect=methods.QueueBindOk)
    peer.call(methods.QueueBind("mine", "b"), expect=methods.QueueBindOk)
    peer.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk)
    assert {"a", "b"} <= set(exchanges)
    peer.call(methods.QueueUnbind("mine", "b"), expect=methods.QueueUnbindOk)
    assert not {"a", "b"} & set(exchanges)
