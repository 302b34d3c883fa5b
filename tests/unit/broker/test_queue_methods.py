"""queue.delete, purge, bind and unbind."""

from pandomq import methods
from tests.unit.broker.conversation import World


def test_delete_returns_the_number_of_deleted_messages() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.publish("", "q").publish("", "q")
    assert peer.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk).message_count == 2
    assert peer.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk).message_count == 0
    assert peer.refused(methods.BasicGet("q")).reply_code == 404


def test_delete_if_unused_and_if_empty() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.publish("", "q")
    close = peer.refused(methods.QueueDelete("q", if_empty=True))
    assert (close.reply_code, close.reply_text) == (406, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty")
    peer.consume("q", no_ack=True)
    peer.hear()
    close = peer.refused(methods.QueueDelete("q", if_unused=True))
    assert (close.reply_code, close.reply_text) == (406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use")
    peer.call(methods.QueueDelete("q", if_unused=True, if_empty=True), expect=methods.QueueDeleteOk)


def test_purge_removes_the_ready_messages() -> None:
    peer = World().peer()
    assert peer.refused(methods.QueuePurge("q")).reply_code == 404
    peer.declare("q")
    for _ in range(3):
        peer.publish("", "q")
    got = peer.get("q", no_ack=False)
    assert got is not None
    assert peer.call(methods.QueuePurge("q"), expect=methods.QueuePurgeOk).message_count == 2
    peer.send(methods.BasicNack(1, False, True))
    assert peer.counts("q") == (1, 0)


def test_bind_and_unbind() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.publish("amq.direct", "k", b"before")
    for _ in range(2):
        peer.call(methods.QueueBind("q", "amq.direct", "k"), expect=methods.QueueBindOk)
    peer.publish("amq.direct", "k", b"bound")
    for _ in range(2):
        peer.call(methods.QueueUnbind("q", "amq.direct", "k"), expect=methods.QueueUnbindOk)
    peer.publish("amq.direct", "k", b"after")
    assert peer.counts("q") == (1, 0)
    got = peer.get("q")
    assert got is not None
    assert got.body == b"bound"


def test_bindings_need_both_ends() -> None:
    peer = World().peer()
    close = peer.refused(methods.QueueBind("q", "amq.direct", "k"))
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no queue 'q' in vhost '/'")
    peer.declare("q")
    close = peer.refused(methods.QueueBind("q", "x", "k"))
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no exchange 'x' in vhost '/'")
    close = peer.refused(methods.QueueBind("q", "", "k"))
    assert (close.reply_code, close.reply_text) == (
        403,
        "ACCESS_REFUSED - operation not permitted on the default exchange",
    )


def test_unbinding_a_missing_binding_is_no_error() -> None:
    peer = World().peer()
    peer.call(methods.QueueUnbind("q", "amq.direct", "k"), expect=methods.QueueUnbindOk)
    peer.declare("q")
    peer.call(methods.QueueUnbind("q", "x", "k"), expect=methods.QueueUnbindOk)
    peer.call(methods.QueueUnbind("q", "amq.direct", "k"), expect=methods.QueueUnbindOk)
    assert peer.refused(methods.QueueUnbind("q", "", "k")).reply_code == 403


def test_deleting_a_queue_withdraws_its_bindings() -> None:
    peer = World().peer()
    for name in ("q", "r"):
        peer.declare(name)
        peer.call(methods.QueueBind(name, "amq.fanout", ""), expect=methods.QueueBindOk)
    peer.publish("amq.fanout", "")
    peer.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk)
    peer.publish("amq.fanout", "")
    peer.declare("q")
    peer.publish("amq.fanout", "")
    assert peer.counts("q") == (0, 0)
    assert peer.counts("r") == (3, 0)


def test_an_auto_delete_queue_goes_with_its_last_consumer() -> None:
    world = World()
    peer, other = world.peer(), world.peer()
    peer.declare("q", auto_delete=True)
    other.leave()
    assert peer.counts("q") == (0, 0)
    peer.consume("q", "a")
    peer.consume("q", "b")
    peer.send(methods.BasicCancel("a"))
    assert "q" in world.broker.state.vhosts["/"].queues
    peer.hear()
    peer.call(methods.BasicCancel("b"), expect=methods.BasicCancelOk)
    assert "q" not in world.broker.state.vhosts["/"].queues


def test_an_auto_delete_queue_goes_with_its_consumers_channel_and_connection() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", auto_delete=True)
    peer.consume("q")
    peer.hear()
    peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    assert not world.broker.state.vhosts["/"].queues
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    peer.declare("q", auto_delete=True, exclusive=True)
    peer.declare("r", auto_delete=True)
    peer.consume("q", "a")
    peer.consume("r", "b")
    peer.leave()
    assert not world.broker.state.vhosts["/"].queues
