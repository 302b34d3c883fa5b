"""Private queues on fronts: here in all but their names, and what they want comes out of the root's outlet once."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import PutPolicy
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster


def bind(peer: Peer, queue: str, exchange: str, key: str = "") -> None:
    peer.call(methods.QueueBind(queue, exchange, key), expect=methods.QueueBindOk)


def outlet_bindings(cluster: Cluster, exchange: str) -> list[str]:
    assert cluster.root is not None
    found = cluster.root.broker.state.vhosts["/"].router.exchanges[exchange].bindings()
    return sorted(binding.routing_key for binding in found)


def test_a_name_is_held_all_over_the_cluster() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    assert here.declare("mine", exclusive=True) == methods.QueueDeclareOk("mine", 0, 0)
    assert here.declare("mine", exclusive=True) == methods.QueueDeclareOk("mine", 0, 0)
    assert cluster.root is not None
    for other in (there, cluster.fronts[0].peer(), cluster.root.peer()):
        assert other.refused(methods.QueueDeclare("mine", exclusive=True)).reply_code == 405
        assert other.refused(methods.QueueDeclare("mine")).reply_code == 405
        assert other.refused(methods.QueueDeclare("mine", passive=True)).reply_code == 405
    here.leave()
    assert there.declare("mine", exclusive=True).queue == "mine"


def test_a_refused_name_leaves_the_others_as_they_are() -> None:
    cluster = Cluster("b", "c")
    one, two = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    one.declare("first", exclusive=True)
    two.declare("taken", exclusive=True)
    assert one.refused(methods.QueueDeclare("taken", exclusive=True)).reply_code == 405
    assert one.declare("second", exclusive=True).queue == "second"
    assert one.declare("first", exclusive=True).queue == "first"


def test_two_of_one_front_ask_for_a_name_at_once() -> None:
    cluster = Cluster()
    cluster.root, root = None, cluster.root
    one, two = cluster.front.peer(), cluster.front.peer()
    one.send(methods.QueueDeclare("q", exclusive=True))
    two.send(methods.QueueDeclare("q", exclusive=True))
    (refusal,) = two.heard()
    assert isinstance(refusal, methods.ChannelClose)
    assert refusal.reply_code == 405
    cluster.root = root
    cluster.settle()
    assert one.heard() == [methods.QueueDeclareOk("q", 0, 0)]


def test_private_queues_work_as_everywhere() -> None:
    peer = Cluster().front.peer()
    name = peer.declare("", exclusive=True).queue
    assert name.startswith("amq.gen-")
    bind(peer, name, "amq.topic", "a.#")
    peer.publish("amq.topic", "a.b", b"one").publish("amq.topic", "b", b"two").publish("", name, b"three")
    assert peer.counts(name) == (2, 0)
    first = peer.get(name, no_ack=False)
    assert first is not None
    assert first.body == b"one"
    peer.send(methods.BasicRecover(True))
    assert peer.heard() == [methods.BasicRecoverOk()]
    peer.consume(name, no_ack=True)
    assert peer.bodies() == [b"one", b"three"]
    peer.send(methods.QueueDelete(name))
    assert peer.heard() == [methods.QueueDeleteOk(0), methods.BasicCancel("t", True)]


@pytest.mark.proves("R27")
def test_bindings_alike_are_one_at_the_root() -> None:
    cluster = Cluster()
    peers = [cluster.front.peer() for _ in range(3)]
    for number, peer in enumerate(peers):
        peer.declare(f"q{number}", exclusive=True)
        bind(peer, f"q{number}", "amq.topic", "news.#")
    bind(peers[0], "q0", "amq.topic", "own")
    assert outlet_bindings(cluster, "amq.topic") == ["news.#", "own"]
    peers[0].leave()
    assert outlet_bindings(cluster, "amq.topic") == ["news.#"]
    peers[1].call(methods.QueueUnbind("q1", "amq.topic", "news.#"), expect=methods.QueueUnbindOk)
    assert outlet_bindings(cluster, "amq.topic") == ["news.#"]
    peers[2].call(methods.QueueDelete("q2"), expect=methods.QueueDeleteOk)
    assert outlet_bindings(cluster, "amq.topic") == []


@pytest.mark.proves("R27", "R30", "R31")
def test_each_broker_gets_one_copy_and_each_queue_one_message() -> None:
    cluster = Cluster("b", "c")
    peers = [front.peer() for front in cluster.fronts for _ in range(3)]
    for number, peer in enumerate(peers):
        peer.declare(f"q{number}", exclusive=True)
        bind(peer, f"q{number}", "amq.fanout", "")
        bind(peer, f"q{number}", "amq.topic", "#")
        peer.consume(f"q{number}", no_ack=True)
        peer.hear()
    before = [front.trunk_octets_down() for front in cluster.fronts]
    body = b"x" * 1000
    peers[0].publish("amq.fanout", "any", body)
    for peer in peers:
        assert peer.bodies() == [body]
    moved = [front.trunk_octets_down() - octets for front, octets in zip(cluster.fronts, before, strict=True)]
    assert moved[0] < len(body) < moved[1] < 2 * len(body)
    assert cluster.root is not None
    cluster.root.peer().publish("amq.topic", "a.b", b"from the root")
    cluster.settle()
    for peer in peers:
        assert peer.bodies() == [b"from the root"]


def test_a_message_for_private_and_shared_queues() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.declare("shared")
    bind(here, "shared", "amq.fanout")
    for peer, name in ((here, "mine"), (there, "yours")):
        peer.declare(name, exclusive=True)
        bind(peer, name, "amq.fanout")
    here.publish("amq.fanout", "", b"one", mandatory=True)
    assert [peer.counts(name)[0] for peer, name in ((here, "shared"), (here, "mine"), (there, "yours"))] == [1, 1, 1]
    assert here.hear() == []


def test_a_mandatory_message_for_a_private_queue_is_not_returned() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.declare("mine", exclusive=True)
    here.publish("", "mine", b"one", mandatory=True)
    there.publish("", "mine", b"two", mandatory=True)
    assert (here.hear(), there.hear()) == ([], [])
    assert here.counts("mine") == (2, 0)


def test_copies_by_cc_and_bcc_reach_private_queues_elsewhere() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.declare("h", exclusive=True)
    there.declare("t", exclusive=True)
    there.declare("u", exclusive=True)
    here.publish("", "h", b"one", Properties(headers={"CC": ["t"], "BCC": ["u"]}))
    for peer, name in ((here, "h"), (there, "t"), (there, "u")):
        got = peer.get(name)
        assert got is not None
        assert got.properties is not None
        assert got.properties.headers == {"CC": ["t"]}


def test_time_limits_and_policies_hold_here() -> None:
    cluster = Cluster()
    assert cluster.root is not None
    cluster.root.administer(PutPolicy("/", "short", "^short", "queues", 0, b'{"max-length": 1}'))
    cluster.settle()
    peer = cluster.front.peer()
    peer.declare("short", exclusive=True)
    peer.declare("ttl", exclusive=True, arguments={"x-message-ttl": 100})
    peer.declare("gone", exclusive=True, arguments={"x-expires": 100})
    for name in ("short", "short", "ttl"):
        peer.publish("", name, b"x")
    assert peer.counts("short") == (1, 0)
    cluster.front.pass_time(200)
    assert peer.counts("ttl") == (0, 0)
    assert peer.refused(methods.QueueDeclare("gone", passive=True)).reply_code == 404


def test_dead_letters_go_to_private_and_shared_queues() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.call(methods.ExchangeDeclare("dead", "fanout"), expect=methods.ExchangeDeclareOk)
    here.declare("shared")
    bind(here, "shared", "dead")
    for peer, name in ((here, "near"), (there, "far")):
        peer.declare(name, exclusive=True)
        bind(peer, name, "dead")
    arguments = {"x-dead-letter-exchange": "dead", "x-message-ttl": 50}
    here.declare("dying", exclusive=True, arguments=arguments)
    here.publish("", "dying", b"one")
    cluster.front.pass_time(100)
    for peer, name in ((here, "near"), (there, "far"), (here, "shared")):
        got = peer.get(name)
        assert got is not None
        assert got.properties is not None
        assert got.properties.headers is not None
        assert got.properties.headers["x-first-death-queue"] == "dying"
        assert peer.counts(name) == (0, 0)


def test_a_cycle_of_dead_letters_ends() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare(
        "shared", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "p", "x-message-ttl": 0}
    )
    peer.declare(
        "p",
        exclusive=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "shared", "x-message-ttl": 0},
    )
    peer.publish("", "shared", b"one")
    cluster.front.pass_time(100)
    assert peer.counts("p") == (0, 0)
    assert peer.counts("shared") == (0, 0)


def test_an_exchange_goes_with_its_last_private_binding() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.call(methods.ExchangeDeclare("e", "fanout", auto_delete=True), expect=methods.ExchangeDeclareOk)
    peer.declare("q", exclusive=True)
    bind(peer, "q", "e")
    peer.call(methods.QueueUnbind("q", "e", ""), expect=methods.QueueUnbindOk)
    assert peer.refused(methods.ExchangeDeclare("e", passive=True)).reply_code == 404
    assert "e" not in cluster.front.broker.state.vhosts["/"].router.exchanges


def test_an_exchange_that_is_deleted_takes_private_bindings_along() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.call(methods.ExchangeDeclare("e", "fanout"), expect=methods.ExchangeDeclareOk)
    here.declare("q", exclusive=True)
    bind(here, "q", "e")
    there.call(methods.ExchangeDelete("e"), expect=methods.ExchangeDeleteOk)
    there.call(methods.ExchangeDeclare("e", "fanout"), expect=methods.ExchangeDeclareOk)
    there.publish("e", "", b"one")
    assert here.counts("q") == (0, 0)
    bind(here, "q", "e")
    there.publish("e", "", b"two")
    assert here.counts("q") == (1, 0)


def test_replies_find_their_way_over_brokers() -> None:
    cluster = Cluster("b", "c")
    asking, answering = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    answering.declare("requests")
    answering.consume("requests", no_ack=True)
    answering.hear()
    asking.consume("amq.rabbitmq.reply-to", "replies", no_ack=True)
    assert asking.heard() == [methods.BasicConsumeOk("replies")]
    asking.publish("", "requests", b"how?", Properties(reply_to="amq.rabbitmq.reply-to"))
    (request,) = answering.hear()
    assert request.properties is not None
    address = request.properties.reply_to
    assert address is not None
    assert answering.declare(address, passive=True) == methods.QueueDeclareOk(address, 0, 1)
    answering.publish("", address, b"so.")
    (reply,) = asking.hear()
    assert (reply.body, reply.method.consumer_tag) == (b"so.", "replies")  # type: ignore[attr-defined]
    asking.call(methods.BasicCancel("replies"), expect=methods.BasicCancelOk)
    assert answering.refused(methods.QueueDeclare(address, passive=True)).reply_code == 404


def test_arguments_and_rights_are_checked_before_a_name_is_claimed() -> None:
    cluster = Cluster()
    assert cluster.root is not None
    cluster.root.admit("poor", configure="^mine$", write="^$", read=".*")
    cluster.settle()
    peer = cluster.front.peer("poor")
    assert peer.refused(methods.QueueDeclare("other", exclusive=True)).reply_code == 403
    assert peer.refused(methods.QueueDeclare("amq.x", exclusive=True)).reply_code == 403
    bad = methods.QueueDeclare("mine", exclusive=True, arguments={"x-message-ttl": -1})
    assert peer.refused(bad).reply_code == 406
    assert peer.declare("mine", exclusive=True).queue == "mine"
    assert peer.refused(methods.QueueBind("mine", "amq.topic", "a")).reply_code == 403


def test_late_messages_wait_at_the_root_and_come_once() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    later = methods.ExchangeDeclare("later", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    here.call(later, expect=methods.ExchangeDeclareOk)
    for peer, name in ((here, "near"), (there, "far")):
        peer.declare(name, exclusive=True)
        bind(peer, name, "later")
    here.publish("later", "", b"now")
    here.publish("later", "", b"soon", Properties(headers={"x-delay": 1000}))
    assert (here.counts("near"), there.counts("far")) == ((1, 0), (1, 0))
    cluster.pass_time(1_500)
    assert (here.counts("near"), there.counts("far")) == ((2, 0), (2, 0))


def test_headers_and_bindings_of_exchanges_route_to_private_queues_elsewhere() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.declare("h", exclusive=True)
    wanted = {"x-match": "all", "color": "red"}
    here.call(methods.QueueBind("h", "amq.headers", "", False, wanted), expect=methods.QueueBindOk)
    there.call(methods.ExchangeBind("amq.headers", "amq.topic", "a.#"), expect=methods.ExchangeBindOk)
    there.publish("amq.topic", "a.b", b"one", Properties(headers={"color": "red"}))
    there.publish("amq.topic", "a.b", b"two", Properties(headers={"color": "blue"}))
    there.publish("amq.topic", "b", b"three", Properties(headers={"color": "red"}))
    got = here.get("h")
    assert got is not None
    assert got.body == b"one"
    assert here.counts("h") == (0, 0)


def test_a_message_that_a_full_private_queue_refuses_is_nacked() -> None:
    peer = Cluster().front.peer()
    peer.declare("full", exclusive=True, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    peer.declare("other", exclusive=True)
    for name in ("full", "other"):
        bind(peer, name, "amq.fanout")
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    for number in range(4):
        peer.say_publish("amq.fanout", "", b"%d" % number)
    peer.say_publish("", "other", b"4").flush()
    confirms = peer.heard()
    nacked = [method.delivery_tag for method in confirms if isinstance(method, methods.BasicNack)]
    acked = [method for method in confirms if isinstance(method, methods.BasicAck)]
    assert nacked == [3, 4]
    assert acked[-1] == methods.BasicAck(5, True) or acked[-1] == methods.BasicAck(5, False)
    assert (peer.counts("full"), peer.counts("other")) == ((2, 0), (5, 0))
    assert peer.get("full") is not None
    peer.publish("amq.fanout", "", b"5")
    (last,) = peer.heard()
    assert isinstance(last, methods.BasicAck)


def test_a_client_that_leaves_while_its_claim_is_under_way_does_not_keep_the_name() -> None:
    cluster = Cluster()
    cluster.front.peer().declare("trunk is there", exclusive=True)
    carry = cluster.front.carry
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    leaving, coming = cluster.front.peer(), cluster.front.peer()
    leaving.send(methods.QueueDeclare("q", exclusive=True))
    leaving.leave()
    coming.send(methods.QueueDeclare("q", exclusive=True))
    cluster.front.carry = carry  # type: ignore[method-assign]
    cluster.settle()
    assert coming.heard() == [methods.QueueDeclareOk("q", 0, 0)]
    assert cluster.front.peer().refused(methods.QueueDeclare("q", exclusive=True)).reply_code == 405
    coming.leave()
    assert cluster.front.peer().declare("q", exclusive=True).queue == "q"


def test_a_consumer_of_replies_too_many_leaves_no_address_behind() -> None:
    cluster = Cluster(limits=BrokerLimits(consumers_max=1))
    one, two = cluster.front.peer(), cluster.front.peer()
    replies = methods.BasicConsume("amq.rabbitmq.reply-to", "t", no_ack=True)
    one.call(replies, expect=methods.BasicConsumeOk)
    assert two.refused(replies).reply_code == 406
    front = cluster.front.broker
    (vhost,) = front.trunks
    assert (len(vhost.reply_queues), len(front.trunks[vhost].claims.names)) == (1, 1)
