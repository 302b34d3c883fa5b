"""A log that commits late: nothing is promised before it is safe, and nothing overtakes."""

import pytest

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import PutUser
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World


def late() -> tuple[World, Peer]:
    world = World()
    peer = world.peer()
    world.late = True
    return world, peer


@pytest.mark.parametrize(
    "method",
    [
        methods.QueueDeclare("new"),
        methods.QueueDelete("q"),
        methods.QueueBind("q", "amq.direct", "k"),
        methods.QueueUnbind("q", "amq.direct", "bound"),
        methods.ExchangeDeclare("new", "direct"),
        methods.ExchangeDelete("x"),
        methods.ExchangeBind("x", "amq.direct"),
        methods.ExchangeUnbind("x", "amq.direct", "bound"),
    ],
)
def test_a_change_of_shared_state_is_answered_when_it_is_committed(method: methods.Method) -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    peer.call(methods.ExchangeDeclare("x", "direct"), expect=methods.ExchangeDeclareOk)
    peer.call(methods.QueueBind("q", "amq.direct", "bound"), expect=methods.QueueBindOk)
    peer.call(methods.ExchangeBind("x", "amq.direct", "bound"), expect=methods.ExchangeBindOk)
    world.late = True
    assert peer.send(method).heard() == []
    world.commit()
    (answer,) = peer.heard()
    assert answer.class_id == method.class_id


def test_replies_about_private_queues_do_not_wait() -> None:
    world, peer = late()
    other = world.connect()
    other.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    assert peer.send(methods.QueueDeclare("shared")).heard() == []
    for method in (
        methods.QueueDeclare("mine", exclusive=True),
        methods.QueueBind("mine", "amq.fanout"),
        methods.QueueUnbind("mine", "amq.fanout"),
        methods.QueueDelete("mine"),
    ):
        assert len(other.send(method).heard()) == 1


def test_later_replies_wait_behind_and_other_channels_do_not() -> None:
    world, peer = late()
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=2)
    peer.say(methods.QueueDeclare("a")).say(methods.BasicQos(0, 1, False)).flush()
    peer.send(methods.ConfirmSelect()).send(methods.QueueDeclare("b"))
    peer.call(methods.BasicQos(0, 1, False), expect=methods.BasicQosOk, channel=2)
    assert len(world.entries) == 2
    world.commit(1)
    # A request without a record waits only for the records before it.
    assert peer.heard() == [methods.QueueDeclareOk("a", 0, 0), methods.BasicQosOk(), methods.ConfirmSelectOk()]
    world.commit(2)
    assert peer.heard() == [methods.QueueDeclareOk("b", 0, 0)]
    peer.call(methods.BasicQos(0, 1, False), expect=methods.BasicQosOk)


def test_a_second_declare_of_an_uncommitted_queue_waits_as_well() -> None:
    world, peer = late()
    other = world.connect()
    other.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    peer.send(methods.QueueDeclare("q"))
    assert other.send(methods.QueueDeclare("q")).heard() == []
    assert other.send(methods.QueueDeclare("q", passive=True)).heard() == []
    world.commit()
    assert other.heard() == [methods.QueueDeclareOk("q", 0, 0), methods.QueueDeclareOk("q", 0, 0)]


def test_deliveries_stay_behind_held_replies() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    world.late = True
    peer.publish("", "q", b"1")
    peer.say(methods.QueueDeclare("other")).say(methods.BasicConsume("q", "t", no_ack=True)).flush()
    assert peer.hear() == []
    world.commit()
    kinds = [type(method) for method in peer.heard()]
    assert kinds == [methods.QueueDeclareOk, methods.BasicConsumeOk, methods.BasicDeliver]


def test_a_message_that_was_asked_for_stays_behind_too() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    peer.publish("", "q", b"body", Properties(message_id="m"))
    world.late = True
    peer.say(methods.QueueDeclare("other")).say(methods.BasicGet("q")).flush()
    assert peer.hear() == []
    world.commit()
    declared, got = peer.hear()
    assert isinstance(declared.method, methods.QueueDeclareOk)
    assert (got.body, got.properties) == (b"body", Properties(message_id="m"))


def test_faults_and_closes_stay_behind() -> None:
    world, peer = late()
    peer.send(methods.QueueDeclare("q")).send(methods.QueueDeclare("missing", passive=True))
    assert peer.hear() == []
    world.commit()
    kinds = [type(method) for method in peer.heard()]
    assert kinds == [methods.QueueDeclareOk, methods.ChannelClose]
    peer.reopen()
    peer.send(methods.QueueDeclare("r")).send(methods.ChannelClose(200, "", 0, 0))
    assert peer.hear() == []
    world.commit()
    assert [type(method) for method in peer.heard()] == [methods.QueueDeclareOk, methods.ChannelCloseOk]
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)


def test_a_commit_waits_for_its_entry_and_confirms_for_theirs() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", durable=True)
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=2)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk, channel=2)
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    world.late = True
    kept = Properties(delivery_mode=2)
    peer.publish("", "q", b"1", kept).send(methods.TxCommit())
    peer.publish("", "q", b"2", kept, channel=2)
    assert peer.hear() == []
    # The inputs behind a commit are handled after it.
    world.commit(len(world.entries))
    assert peer.heard() == [methods.TxCommitOk()]
    world.commit()
    assert peer.heard() == [methods.BasicAck(1, False)]


def test_a_commit_that_wrote_nothing_still_waits_for_what_was_written_before() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", durable=True)
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    world.late = True
    peer.publish("", "q", b"1", Properties(delivery_mode=2)).send(methods.TxCommit())
    peer.send(methods.TxCommit())
    assert peer.hear() == []
    world.commit()
    assert peer.heard() == [methods.TxCommitOk(), methods.TxCommitOk()]
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)


def test_purge_waits_for_its_entry() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", durable=True)
    peer.publish("", "q", b"1", Properties(delivery_mode=2))
    world.late = True
    assert peer.send(methods.QueuePurge("q")).heard() == []
    world.commit()
    assert peer.heard() == [methods.QueuePurgeOk(1)]


def test_a_client_that_left_before_the_commit_is_not_answered() -> None:
    world, peer = late()
    peer.send(methods.QueueDeclare("q"))
    peer.leave()
    world.commit()
    assert len(world.broker.held) == 0


def test_cancellations_do_not_overtake_the_consume_ok() -> None:
    world = World()
    peer, other = world.peer(), world.peer()
    other.declare("q")
    world.late = True
    peer.say(methods.QueueDeclare("r")).say(methods.BasicConsume("q", "t")).flush()
    other.send(methods.QueueDelete("q"))
    assert peer.hear() == []
    world.commit()
    kinds = [type(method) for method in peer.heard()]
    assert kinds == [methods.QueueDeclareOk, methods.BasicConsumeOk, methods.BasicCancel]


def confirming() -> tuple[World, Peer]:
    """With a transient queue t, and a log that is late from here on."""
    world = World()
    peer = world.peer()
    peer.declare("t")
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    world.late = True
    return world, peer


def test_a_confirm_does_not_overtake_the_reply_to_an_earlier_request() -> None:
    world, peer = confirming()
    peer.say_publish("", "t", b"1").say(methods.QueueDeclare("a")).say_publish("", "t", b"2").flush()
    assert peer.heard() == [methods.BasicAck(1, False)]
    peer.publish("", "t", b"3")
    peer.say(methods.QueueDeclare("b")).say_publish("", "t", b"4").flush()
    assert peer.hear() == []
    world.commit(len(world.entries) - 1)
    assert peer.heard() == [methods.QueueDeclareOk("a", 0, 0), methods.BasicAck(3, True)]
    world.commit()
    assert peer.heard() == [methods.QueueDeclareOk("b", 0, 0), methods.BasicAck(4, False)]
    assert peer.publish("", "t", b"5").heard() == [methods.BasicAck(5, False)]


def test_a_confirm_stays_behind_a_reply_that_wrote_nothing_itself() -> None:
    world, peer = confirming()
    other = world.connect()
    other.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    other.send(methods.QueueDeclare("a"))
    peer.say(methods.QueueDeclare("a")).say_publish("", "t", b"1").flush()
    assert peer.hear() == []
    world.commit()
    assert peer.heard() == [methods.QueueDeclareOk("a", 0, 0), methods.BasicAck(1, False)]


def test_a_return_stays_behind_replies_and_before_its_confirm() -> None:
    world, peer = confirming()
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=2)
    peer.send(methods.QueueDeclare("a"))
    # The batch of the return has an entry of its own, later than the one that its channel waits for.
    peer.say_publish("", "nowhere", b"back", mandatory=True).say_publish("", "t", b"2")
    peer.say(methods.QueueDeclare("b"), channel=2).flush()
    assert peer.hear() == []
    world.commit(len(world.entries) - 1)
    assert peer.heard() == [methods.QueueDeclareOk("a", 0, 0)]
    world.commit()
    kinds = [(heard.channel, type(heard.method)) for heard in peer.hear()]
    assert sorted(kinds, key=lambda kind: kind[0]) == [
        (1, methods.BasicReturn),
        (1, methods.BasicAck),
        (2, methods.QueueDeclareOk),
    ]


def test_a_return_of_a_transaction_precedes_its_commit_ok() -> None:
    world = World()
    peer = world.peer()
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    world.late = True
    peer.say_publish("", "nowhere", b"back", mandatory=True).say(methods.TxCommit()).flush()
    world.commit()
    assert [type(method) for method in peer.heard()] == [methods.BasicReturn, methods.TxCommitOk]


def test_a_client_with_too_many_returns_is_read_again_after_the_commit() -> None:
    """While the log is slow, what cannot be routed is kept only up to a limit."""
    world = World(limits=BrokerLimits(outgoing_bytes_max=10_000))
    peer = world.peer()
    world.late = True
    peer.send(methods.QueueDeclare("a"))
    for _ in range(10):
        peer.publish("", "nowhere", b"x" * 4000, mandatory=True)
    assert peer.client.held_bytes < 20_000
    assert world.waiting
    heard = 0
    while world.waiting:
        world.commit()
        heard += len(peer.hear())
    assert heard == 11


@pytest.mark.proves("R16")
def test_a_reply_about_shared_state_waits_until_it_is_applied_everywhere() -> None:
    world = World()
    peer, other = world.peer(), world.peer()
    world.broker.held.applied_everywhere(0)
    done: list[object] = []
    assert peer.send(methods.QueueDeclare("new")).heard() == []
    world.broker.administration.submit(PutUser("ann", "", "scrypt", ()), done.append, world.now_ms)
    world.run([])
    assert not done
    # Nothing else waits for other brokers, and even who changes nothing waits if it speaks of what others lack.
    assert len(other.send(methods.QueueDeclare("mine", exclusive=True)).heard()) == 1
    assert len(other.publish("", "mine").send(methods.TxSelect(), methods.TxCommit()).heard()) == 2
    assert other.send(methods.ExchangeDeclare("amq.direct", "direct", durable=True)).heard() == []
    world.broker.held.applied_everywhere(1)
    assert [type(method) for method in peer.heard()] == [methods.QueueDeclareOk]
    assert other.heard() == []
    world.broker.held.applied_everywhere(2)
    assert done == [None]
    assert [type(method) for method in other.heard()] == [methods.ExchangeDeclareOk]
    assert len(world.broker.held) == 0
    assert len(peer.send(methods.QueueDeclare("new", passive=True)).heard()) == 1


def test_replies_that_wait_for_other_brokers_keep_the_order_of_their_channel() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    world.broker.held.applied_everywhere(1)
    peer.consume("q", "t")
    peer.heard()
    peer.send(methods.QueueDeclare("new"), methods.BasicQos(), methods.QueuePurge("q")).publish("", "q", b"m")
    assert peer.heard() == []
    world.broker.held.applied_everywhere(2)
    world.run([])
    assert [type(method) for method in peer.heard()] == [
        methods.QueueDeclareOk,
        methods.BasicQosOk,
        methods.QueuePurgeOk,
        methods.BasicDeliver,
    ]
    assert peer.client.held_bytes == 0


@pytest.mark.parametrize("replicated", [False, True])
def test_a_publish_behind_a_reply_that_waits_for_other_brokers_is_confirmed_after_it(replicated: bool) -> None:
    """Otherwise a confirm overtakes the return of its message, which waits behind the reply."""
    world = World()
    peer = world.peer()
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    world.broker.engine.replicated = replicated
    world.broker.held.applied_everywhere(0)
    peer.publish("amq.direct", "nowhere", b"before", mandatory=True)
    assert [type(method) for method in peer.heard()] == [methods.BasicReturn, methods.BasicAck]
    peer.send(methods.QueueDeclare("one", durable=True))
    peer.publish("amq.direct", "nowhere", b"back", mandatory=True).publish("", "one", b"kept")
    peer.send(methods.QueueDeclare("two"))
    peer.publish("amq.direct", "nowhere")
    world.broker.received(len(world.entries))
    assert peer.heard() == []
    world.broker.held.applied_everywhere(1)
    assert [type(method) for method in peer.heard()] == [
        methods.QueueDeclareOk,
        methods.BasicReturn,
        methods.BasicAck,
    ]
    world.broker.held.applied_everywhere(len(world.entries))
    assert peer.heard() == [methods.QueueDeclareOk("two", 0, 0), methods.BasicAck(4, False)]
    assert peer.publish("", "one").heard() == [methods.BasicAck(5, False)]


def test_a_client_that_left_meanwhile_gets_no_reply_that_waited_for_other_brokers() -> None:
    world = World()
    peer = world.peer()
    world.broker.held.applied_everywhere(0)
    peer.send(methods.QueueDeclare("new"))
    peer.leave()
    world.broker.held.applied_everywhere(1)
    assert len(world.broker.held) == 0


def test_publishes_wait_until_other_brokers_have_bound_their_queues() -> None:
    world = World()
    peer, other = world.peer(), world.peer()
    peer.declare("q")
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    peer.publish("", "q", b"1")
    world.broker.held.publishes_wait = True
    assert peer.send(methods.TxCommit(), methods.BasicQos()).heard() == []
    assert other.publish("", "q", b"2").send(methods.BasicQos()).heard() == []
    assert world.peer().counts("q")[0] == 0
    world.broker.held.publishes_wait = False
    world.run([])
    assert [type(method) for method in peer.heard()] == [methods.TxCommitOk, methods.BasicQosOk]
    assert [type(method) for method in other.heard()] == [methods.BasicQosOk]
    assert world.peer().counts("q")[0] == 2
