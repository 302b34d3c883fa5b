"""The root's work for brokers with private queues: names, outlets, and one copy for each."""

from __future__ import annotations

import pytest

from pandomq import limits, methods
from pandomq.broker import views
from pandomq.broker.log.commands import PutLimits, PutPolicy
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World

OUTLET = {"x-pandomq-outlet": True}


class Elsewhere:
    """Another broker: its trunk, with an outlet that it consumes from."""

    def __init__(self, world: World, name: str, *bindings: tuple[str, str]) -> None:
        self.world = world
        self.name = name
        self.trunk = world.connect(user="", origin=name, trunk=True)
        self.trunk.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
        declare = methods.QueueDeclare("", exclusive=True, arguments=OUTLET)
        self.outlet = self.trunk.call(declare, expect=methods.QueueDeclareOk).queue
        self.trunk.call(methods.BasicConsume(self.outlet, "o", no_ack=True), expect=methods.BasicConsumeOk)
        for exchange, key in bindings:
            self.bind(exchange, key)

    def bind(self, exchange: str, key: str) -> None:
        self.trunk.call(methods.QueueBind(self.outlet, exchange, key), expect=methods.QueueBindOk)

    def claim(self, name: str) -> None:
        self.trunk.call(methods.QueueDeclare(name, exclusive=True), expect=methods.QueueDeclareOk)

    def client(self) -> Peer:
        """The tunnel of one of its clients."""
        peer = self.world.connect(origin=self.name)
        peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
        return peer

    def got(self) -> list[bytes]:
        return self.trunk.bodies()


@pytest.mark.proves("R30", "R31")
def test_each_broker_gets_one_copy_and_the_one_it_came_from_none() -> None:
    world = World()
    bindings = (("amq.topic", "a.*"), ("amq.topic", "*.b"), ("amq.fanout", ""))
    n2, n3 = Elsewhere(world, "n2", *bindings), Elsewhere(world, "n3", *bindings)
    here = world.peer()
    here.declare("shared")
    here.call(methods.QueueBind("shared", "amq.topic", "#"), expect=methods.QueueBindOk)
    for publisher, body in ((here, b"0"), (n2.client(), b"2"), (n3.client(), b"3")):
        publisher.publish("amq.topic", "a.b", body)
        publisher.publish("amq.topic", "a.b", body)
    assert n2.got() == [b"0", b"0", b"3", b"3"]
    assert n3.got() == [b"0", b"0", b"2", b"2"]
    assert here.counts("shared")[0] == 6


def test_bindings_that_come_and_go_change_where_messages_of_other_brokers_go() -> None:
    world = World()
    n2, n3 = Elsewhere(world, "n2"), Elsewhere(world, "n3")
    publisher = n2.client()
    publisher.publish("amq.direct", "k", b"1")
    n3.bind("amq.direct", "k")
    n2.bind("amq.direct", "k")
    publisher.publish("amq.direct", "k", b"2")
    n3.trunk.send(methods.QueueUnbind(n3.outlet, "amq.direct", "k"))
    publisher.publish("amq.direct", "k", b"3")
    n3.trunk.send(methods.QueueBind(n3.outlet, "amq.direct", "k"))
    publisher.publish("amq.direct", "k", b"4")
    assert (n2.got(), n3.got()) == ([], [b"2", b"4"])


def test_slowly_routed_messages_do_not_return_to_their_broker_either() -> None:
    world = World()
    here = world.peer()
    here.call(methods.ExchangeDeclare("h", "headers"), expect=methods.ExchangeDeclareOk)
    n2, n3 = (
        Elsewhere(world, "n2", ("h", ""), ("amq.direct", "b")),
        Elsewhere(world, "n3", ("h", ""), ("amq.direct", "b")),
    )
    publisher = n2.client()
    publisher.publish("h", "", b"1")
    publisher.publish("amq.direct", "a", b"2", Properties(headers={"CC": ["b"]}))
    assert (n2.got(), n3.got()) == ([], [b"1", b"2"])


def test_a_mandatory_message_comes_back_if_only_its_own_broker_wants_it() -> None:
    world = World()
    n2 = Elsewhere(world, "n2", ("amq.direct", "k"))
    publisher = n2.client()
    publisher.publish("amq.direct", "k", mandatory=True)
    (returned,) = publisher.heard()
    assert isinstance(returned, methods.BasicReturn)
    # But it was matched there: an alternate does not get it.
    here = world.peer()
    here.declare("rest")
    here.call(methods.QueueBind("rest", "amq.fanout", ""), expect=methods.QueueBindOk)
    alternate = methods.ExchangeDeclare("a", "direct", arguments={"alternate-exchange": "amq.fanout"})
    here.call(alternate, expect=methods.ExchangeDeclareOk)
    n2.bind("a", "k")
    publisher.publish("a", "k").publish("a", "other")
    assert here.counts("rest")[0] == 1


def test_other_brokers_see_the_keys_that_consumers_must_not() -> None:
    world = World()
    n3 = Elsewhere(world, "n3", ("amq.direct", "b"))
    here = world.peer()
    here.declare("shared")
    here.call(methods.QueueBind("shared", "amq.direct", "b"), expect=methods.QueueBindOk)
    blind = Properties(headers={"BCC": ["b"]})
    here.publish("amq.direct", "a", b"1", blind)
    here.call(methods.TxSelect(), expect=methods.TxSelectOk)
    here.publish("amq.direct", "a", b"2", blind).call(methods.TxCommit(), expect=methods.TxCommitOk)
    got = n3.trunk.hear()
    assert [(one.body, one.properties and one.properties.headers) for one in got] == [
        (b"1", blind.headers),
        (b"2", blind.headers),
    ]
    for _ in range(2):
        shown = here.get("shared")
        assert shown is not None
        assert shown.properties is not None
        assert shown.properties.headers == {}


def test_transactions_give_each_broker_one_copy() -> None:
    world = World()
    n2, n3 = Elsewhere(world, "n2", ("amq.fanout", "")), Elsewhere(world, "n3", ("amq.fanout", ""))
    for elsewhere, names in ((n2, ("p2", "q2")), (n3, ("p3", "q3"))):
        for name in names:
            elsewhere.claim(name)
    publisher = n2.client()
    publisher.call(methods.TxSelect(), expect=methods.TxSelectOk)
    publisher.publish("amq.fanout", "", b"1")
    publisher.publish("", "p2", b"2", Properties(headers={"CC": ["q2", "p3", "q3"]}))
    assert (n2.got(), n3.got()) == ([], [])
    publisher.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert (n2.got(), n3.got()) == ([], [b"1", b"2"])


def test_dead_letters_and_delayed_messages_also_go_to_the_broker_of_their_publisher() -> None:
    world = World()
    here = world.peer()
    later = methods.ExchangeDeclare("later", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    here.call(later, expect=methods.ExchangeDeclareOk)
    here.call(methods.ExchangeDeclare("first", "fanout"), expect=methods.ExchangeDeclareOk)
    here.call(methods.ExchangeBind("later", "first", ""), expect=methods.ExchangeBindOk)
    here.declare("short", arguments={"x-message-ttl": 10, "x-dead-letter-exchange": "amq.direct"})
    n2 = Elsewhere(world, "n2", ("amq.direct", "short"), ("later", "k"))
    n2.client().publish("", "short", b"dead").publish("first", "k", b"late", Properties(headers={"x-delay": 50}))
    world.pass_time(100)
    heard = [one for one in n2.trunk.hear() if isinstance(one.method, methods.BasicDeliver)]
    assert [(one.method.exchange, one.body) for one in heard if isinstance(one.method, methods.BasicDeliver)] == [
        ("amq.direct", b"dead"),
        ("later", b"late"),
    ]


@pytest.mark.proves("R27")
def test_a_claimed_name_is_refused_to_others() -> None:
    world = World()
    n2, n3 = Elsewhere(world, "n2"), Elsewhere(world, "n3")
    n2.claim("mine")
    n2.claim("mine")
    for peer in (world.peer(), n3.trunk, n2.client()):
        for method in (
            methods.QueueDeclare("mine"),
            methods.QueueDeclare("mine", exclusive=True),
            methods.QueueDeclare("mine", passive=True),
            methods.QueueDelete("mine"),
            methods.QueuePurge("mine"),
            methods.QueueBind("mine", "amq.direct", "k"),
            methods.BasicConsume("mine"),
            methods.BasicGet("mine"),
        ):
            close = peer.refused(method)
            assert close.reply_code == 405, method
            assert close.reply_text.startswith(
                "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'"
            )
    world.peer().publish("", "mine", b"m")
    n2.client().publish("", "mine", b"back")
    assert n2.got() == [b"m"]
    n2.trunk.call(methods.QueueDelete("mine"), expect=methods.QueueDeleteOk)
    world.peer().declare("mine")


def test_claims_cannot_take_the_queues_of_others() -> None:
    world = World()
    world.peer().declare("shared")
    n2 = Elsewhere(world, "n2")
    assert n2.trunk.refused(methods.QueueDeclare("shared", exclusive=True)).reply_code == 405
    assert n2.trunk.refused(methods.QueueBind("", "amq.direct", "k")).reply_code == 404
    n2.claim("mine")
    assert n2.trunk.refused(methods.QueueBind("mine", "amq.direct", "k")).reply_code == 403


def test_a_trunk_deletes_nothing_but_its_own() -> None:
    world = World()
    n2 = Elsewhere(world, "n2")
    world.peer().declare("shared")
    n2.trunk.call(methods.QueueDelete("shared"), expect=methods.QueueDeleteOk)
    assert "shared" in world.broker.state.vhosts["/"].queues


def test_names_that_the_other_broker_made() -> None:
    world = World()
    n2 = Elsewhere(world, "n2")
    n2.claim("amq.gen-made-there")
    address = "amq.rabbitmq.reply-to.made-there"
    n2.claim(address)
    here = world.peer()
    assert here.refused(methods.QueueDeclare("amq.gen-other")).reply_code == 403
    assert here.declare(address, passive=True).consumer_count == 1
    here.publish("", address, b"answer").publish("", "amq.gen-made-there", b"m")
    assert n2.got() == [b"answer", b"m"]
    assert address not in world.broker.state.vhosts["/"].queues
    n2.trunk.call(methods.QueueDelete(address), expect=methods.QueueDeleteOk)
    assert here.refused(methods.QueueDeclare(address, passive=True)).reply_code == 404


def test_outlets_are_for_trunks_alone_and_there_is_one() -> None:
    world = World()
    n2 = Elsewhere(world, "n2")
    for peer, exclusive in ((world.peer(), True), (n2.client(), True), (n2.trunk, False)):
        close = peer.refused(methods.QueueDeclare("o", exclusive=exclusive, arguments=OUTLET))
        assert close.reply_code == 406
        assert close.reply_text.endswith("it is reserved for other brokers of the cluster")
    second = n2.trunk.refused(methods.QueueDeclare("o", exclusive=True, arguments=OUTLET))
    assert second.reply_text == "PRECONDITION_FAILED - broker 'n2' already has an outlet in vhost '/'"
    without = world.connect(user="", origin="n9", trunk=True)
    without.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    assert without.refused(methods.QueueDeclare("p", exclusive=True)).reply_code == 406


def test_a_new_trunk_takes_the_place_of_one_that_is_not_known_to_be_dead() -> None:
    world = World()
    old = Elsewhere(world, "n2", ("amq.fanout", ""))
    old.claim("mine")
    new = Elsewhere(world, "n2", ("amq.fanout", ""))
    assert old.trunk.fault().reply_code == 320
    new.claim("mine")
    world.peer().publish("amq.fanout", "", b"1").publish("", "mine", b"2")
    new.client().publish("amq.fanout", "", b"own")
    assert new.got() == [b"1", b"2"]
    old.trunk.leave()
    world.peer().publish("", "mine", b"3")
    assert new.got() == [b"3"]


@pytest.mark.parametrize("lost", [True, False])
def test_an_outlet_goes_with_its_trunk_and_exchanges_stay(lost: bool) -> None:
    world = World()
    here = world.peer()
    here.call(methods.ExchangeDeclare("e", "fanout", auto_delete=True), expect=methods.ExchangeDeclareOk)
    n2 = Elsewhere(world, "n2", ("e", ""))
    n2.claim("mine")
    here.publish("e", "").publish("", "mine")
    if lost:
        n2.trunk.leave()
    else:
        n2.trunk.send(methods.QueueUnbind(n2.outlet, "e", ""), methods.QueueDelete(n2.outlet))
    vhost = world.broker.state.vhosts["/"]
    assert ("e" in vhost.router.exchanges) is lost
    assert not vhost.outlets
    here.publish("", "mine", mandatory=True)
    assert [type(method) for method in here.heard()] == [methods.BasicReturn]
    assert ("mine" in vhost.queues) is not lost


def test_neither_policies_nor_limits_nor_listings_concern_outlets() -> None:
    world = World()
    n2 = Elsewhere(world, "n2", ("amq.fanout", ""))
    n2.claim("mine")
    policy = PutPolicy("/", "p", ".*", "all", 1, b'{"expires": 1, "max-length": 0, "message-ttl": 0}')
    assert world.administer(policy, PutLimits("vhost", "/", {"max-queues": 2})) is None
    world.pass_time(1000)
    world.peer().publish("amq.fanout", "", b"m")
    assert n2.got() == [b"m"]
    assert [queue.name for queue in views.queues(world.broker)] == ["mine"]
    assert [binding.destination for binding in views.bindings(world.broker)] == ["mine"]
    world.peer().declare("other")
    assert world.peer().refused(methods.QueueDeclare("more")).reply_code == 406


def test_a_trunk_acknowledges_the_number_of_received_messages() -> None:
    world = World()
    n2 = Elsewhere(world, "n2", ("amq.fanout", ""))
    world.peer().publish("amq.fanout", "").publish("amq.fanout", "")
    n2.trunk.send(methods.BasicAck(1, True), methods.BasicAck(2, True))
    assert world.broker.state.vhosts["/"].outlets["n2"].received_count == 2
    assert [type(method) for method in n2.trunk.heard()] == [methods.BasicDeliver] * 2


def confirming(peer: Peer) -> Peer:
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    return peer


@pytest.mark.proves("R31")
def test_a_confirm_means_that_all_brokers_have_the_message() -> None:
    world = World()
    n2, n3 = Elsewhere(world, "n2", ("amq.fanout", "")), Elsewhere(world, "n3", ("amq.fanout", ""), ("amq.direct", "k"))
    here, there = confirming(world.peer()), confirming(n2.client())
    assert here.publish("amq.fanout", "").publish("amq.fanout", "").heard() == []
    assert there.publish("amq.fanout", "").publish("amq.direct", "nowhere").heard() == []
    assert confirming(world.peer()).publish("amq.direct", "nowhere").heard() == [methods.BasicAck(1)]
    n2.trunk.send(methods.BasicAck(2, True))
    assert here.heard() == []
    n3.trunk.send(methods.BasicAck(1, True))
    assert here.heard() == [methods.BasicAck(1)]
    n3.trunk.send(methods.BasicAck(3, True))
    assert here.heard() == [methods.BasicAck(2)]
    assert there.heard() == [methods.BasicAck(2, True)]


def test_a_broker_that_is_gone_or_silent_is_not_waited_for() -> None:
    world = World()
    n2, n3 = Elsewhere(world, "n2", ("amq.fanout", "")), Elsewhere(world, "n3", ("amq.fanout", ""))
    peer = confirming(world.peer())
    assert peer.publish("amq.fanout", "").heard() == []
    n2.trunk.leave()
    assert peer.heard() == []
    world.pass_time(limits.RECEIPT_WAIT_MS - 1)
    assert peer.heard() == []
    world.pass_time(1)
    assert peer.heard() == [methods.BasicAck(1)]
    # From now on nobody waits for it, until it has caught up.
    assert peer.publish("amq.fanout", "").heard() == [methods.BasicAck(2)]
    n3.trunk.send(methods.BasicAck(1, True))
    assert peer.publish("amq.fanout", "").heard() == [methods.BasicAck(3)]
    n3.trunk.send(methods.BasicAck(3, True))
    assert peer.publish("amq.fanout", "").heard() == []
    n3.trunk.send(methods.BasicAck(4, True))
    assert peer.heard() == [methods.BasicAck(4)]
    n3.trunk.leave()
    assert peer.publish("amq.fanout", "").heard() == [methods.BasicAck(5)]
    assert world.broker.next_deadline_ms > world.now_ms
