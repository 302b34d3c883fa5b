"""The law of the log: whatever happened, the entries that a broker proposed rebuild what it would keep."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import methods
from pandomq.broker.log import commands
from pandomq.broker.log.commands import AdministrativeCommand
from pandomq.errors import ConnectionFault
from pandomq.fieldtable import Int32
from pandomq.properties import Properties
from tests.support.examples import examples
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.durable_view import durable_view

QUEUES = ("a", "b", "c", "private")
EXCHANGES = ("x", "y", "later")
KEYS = ("k", "l", "a", "b", "c")

queue_names = st.sampled_from(QUEUES)
exchange_names = st.sampled_from(EXCHANGES)
keys = st.sampled_from(KEYS)
dead_letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "b"}
queue_arguments = st.sampled_from(
    [
        {},
        {},
        {"x-max-length": 2},
        {"x-message-ttl": 50, **dead_letters},
        {"x-max-length": 1, **dead_letters},
        {"x-max-length": 1, "x-overflow": "reject-publish-dlx", **dead_letters},
        {"x-expires": 200},
        {"x-max-priority": 3},
        {"x-last-value-key": "key"},
        {"x-delivery-limit": 1, **dead_letters},
    ]
)


def declare_queue(name: str, durable: bool, auto_delete: bool, arguments: dict[str, Any]) -> methods.Method:
    exclusive = name == "private"
    return methods.QueueDeclare(name, False, durable, exclusive, auto_delete, False, arguments)


def declare_exchange(name: str, durable: bool, auto_delete: bool) -> methods.Method:
    if name == "later":
        arguments = {"x-delayed-type": "direct"}
        return methods.ExchangeDeclare(name, "x-delayed-message", False, durable, auto_delete, False, False, arguments)
    return methods.ExchangeDeclare(name, "direct", False, durable, auto_delete)


said = st.one_of(
    st.builds(declare_queue, queue_names, st.booleans(), st.booleans(), queue_arguments),
    st.builds(declare_exchange, exchange_names, st.booleans(), st.booleans()),
    st.builds(methods.QueueBind, queue_names, st.sampled_from((*EXCHANGES, "amq.direct")), keys),
    st.builds(methods.QueueUnbind, queue_names, exchange_names, keys),
    st.builds(methods.ExchangeBind, exchange_names, exchange_names, keys),
    st.builds(methods.ExchangeUnbind, exchange_names, exchange_names, keys),
    st.builds(methods.QueueDelete, queue_names),
    st.builds(methods.ExchangeDelete, exchange_names),
    st.builds(methods.QueuePurge, queue_names),
    st.builds(methods.BasicConsume, queue_names, st.sampled_from(("s", "t")), st.just(False), st.booleans()),
    st.builds(methods.BasicCancel, st.sampled_from(("s", "t"))),
    st.builds(methods.BasicGet, queue_names, st.booleans()),
    st.builds(methods.BasicAck, st.integers(0, 3), st.booleans()),
    st.builds(methods.BasicNack, st.integers(0, 3), st.just(True), st.booleans()),
    st.just(methods.BasicRecover(True)),
    st.just(methods.TxSelect()),
    st.just(methods.TxCommit()),
    st.just(methods.TxRollback()),
)
properties = st.builds(
    Properties,
    headers=st.sampled_from([None, {"x-delay": Int32(70)}, {"key": "1"}, {"key": "2"}, {"CC": ["b"]}]),
    delivery_mode=st.sampled_from([1, 2, 2]),
    priority=st.sampled_from([None, 1, 3]),
    expiration=st.sampled_from([None, None, "30"]),
)
published = st.tuples(st.sampled_from(("", *EXCHANGES, "amq.direct")), keys, st.binary(max_size=3), properties)
users = st.sampled_from(("ann", "bob"))
vhosts = st.sampled_from(("/", "v"))
patterns = st.sampled_from(("", ".*", "^a", "[bx]"))
definitions = st.sampled_from(
    (
        b'{"max-length": 1}',
        b'{"max-length": 2, "dead-letter-exchange": "", "dead-letter-routing-key": "b"}',
        b'{"message-ttl": 40}',
        b'{"expires": 100}',
        b'{"overflow": "reject-publish", "max-length-bytes": 3}',
        b'{"alternate-exchange": "amq.direct"}',
        b'{"delivery-limit": 1}',
        b'{"nonsense": 1}',
    )
)
apply_to = st.sampled_from(("all", "queues", "exchanges"))
policy_names = st.sampled_from(("p", "o"))
limit_values = st.dictionaries(st.sampled_from(("max-queues", "max-connections")), st.none() | st.integers(-1, 9))
administered = st.one_of(
    st.builds(commands.PutUser, users, st.just(""), st.just("scrypt"), st.just(("management",))),
    st.builds(commands.DeleteUser, users),
    st.builds(commands.PutVhost, vhosts, st.sampled_from(("", "d"))),
    st.builds(commands.DeleteVhost, st.just("v")),
    st.builds(commands.PutPermissions, vhosts, users | st.just("guest"), st.just(".*"), patterns, st.just(".*")),
    st.builds(commands.DeletePermissions, vhosts, users),
    st.builds(commands.PutTopicPermissions, vhosts, users, exchange_names, patterns, patterns),
    st.builds(commands.DeleteTopicPermissions, vhosts, users, st.sampled_from(("", "x"))),
    st.builds(
        commands.PutPolicy, vhosts, policy_names, patterns, apply_to, st.integers(0, 2), definitions, st.booleans()
    ),
    st.builds(commands.DeletePolicy, vhosts, policy_names, st.booleans()),
    st.builds(commands.PutLimits, st.just("vhost"), vhosts, limit_values),
)
steps = st.one_of(
    administered,
    st.tuples(st.integers(0, 1), said, st.booleans()),
    st.tuples(st.integers(0, 1), published, st.booleans()),  # whether it comes in one read with what follows
    st.tuples(st.integers(0, 1), published, st.booleans()),
    st.sampled_from(("leave", 1, 50, 120)),  # a number is milliseconds that pass
)


SCENE = (
    methods.QueueDeclare("a", durable=True, arguments=dead_letters),
    methods.QueueDeclare("b", durable=True),
    methods.ExchangeDeclare("x", "direct", durable=True),
    methods.QueueBind("a", "x", "k"),
    methods.QueueBind("b", "x", "k"),
)
"""Something to begin with."""


class History:
    """Two clients that do as they are told, whatever comes of it."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.world.administer(commands.PutVhost("v"), commands.PutPermissions("v", "guest", ".*", ".*", ".*"))
        self.peers = [self.world.peer(), self.world.peer(vhost="v")]
        for peer in self.peers:
            for method in SCENE:
                peer.say(method)
        self._flush()

    def play(self, step: Any) -> None:
        if isinstance(step, AdministrativeCommand):
            # The result does not matter; the command is handled together with the held-back inputs, since an
            # administrator may act at any time.
            self.world.administer(step)
        elif step == "leave":
            self.peers.pop(0).leave()
            self.peers.append(self._peer())
        elif isinstance(step, int):
            self._flush()
            self.world.pass_time(step)
        else:
            who, what, together = step
            peer = self.peers[who]
            if isinstance(what, tuple):
                peer.say_publish(*what)
            else:
                peer.say(what)
            if not together:
                self._flush()

    def _peer(self) -> Peer:
        """Somebody who got in: in the second vhost, if there is one that may be entered."""
        try:
            return self.world.peer(vhost="v")
        except ConnectionFault:
            self.world.administer(commands.PutLimits("vhost", "/", {"max-connections": None}))
            return self.world.peer()

    def _flush(self) -> None:
        for place, peer in enumerate(self.peers):
            peer.flush()
            heard = peer.heard()
            if peer.client in self.world.closed:
                peer.leave()
                self.peers[place] = self._peer()
            elif any(isinstance(method, methods.ChannelClose) for method in heard):
                peer.reopen()

    def end(self) -> World:
        self._flush()
        for peer in self.peers:
            peer.leave()
        return self.world


@settings(max_examples=examples(200))
@given(st.lists(steps, min_size=20, max_size=100))
def test_entries_rebuild_the_durable_state(history: list[Any]) -> None:
    story = History()
    for step in history:
        story.play(step)
    world = story.end()
    assert durable_view(world.replayed().broker) == durable_view(world.broker)


@settings(max_examples=40)
@given(st.lists(steps, min_size=10, max_size=40))
def test_every_prefix_of_the_log_is_a_state_that_was(history: list[Any]) -> None:
    """Replay never fails in the middle, and replaying twice gives the same."""
    story = History()
    for step in history:
        story.play(step)
    world = story.end()
    for length in range(len(world.entries)):
        views = []
        for _ in range(2):
            prefix = World()
            prefix.entries = world.entries[:length]
            views.append(durable_view(prefix.replayed().broker))
        assert views[0] == views[1]


def test_a_replayed_broker_goes_on_where_the_other_was() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", durable=True)
    for number in range(5):
        peer.publish("", "q", bytes([number]), Properties(delivery_mode=2))
    assert peer.get("q") is not None
    other = world.replayed()
    peer = other.peer()
    assert peer.declare("r", durable=True).queue == "r"
    queues = other.broker.state.vhosts["/"].queues
    assert queues["r"].kernel.queue_id == queues["q"].kernel.queue_id + 1
    peer.publish("", "q", bytes([5]), Properties(delivery_mode=2))
    bodies = [got.body for got in (peer.get("q") for _ in range(5)) if got is not None]
    assert bodies == [bytes([number]) for number in range(1, 6)]


@pytest.mark.parametrize("durable", [False, True])
def test_private_queues_are_in_no_log(durable: bool) -> None:
    world = World()
    peer = world.peer()
    peer.declare("mine", exclusive=True, durable=durable)
    peer.call(methods.QueueBind("mine", "amq.direct", "k"), expect=methods.QueueBindOk)
    peer.publish("amq.direct", "k", b"", Properties(delivery_mode=2))
    peer.call(methods.QueueDelete("mine"), expect=methods.QueueDeleteOk)
    assert world.entries == []


def test_an_exchange_kept_alive_by_a_private_queue_is_kept_everywhere() -> None:
    world = World()
    peer: Peer = world.peer()
    peer.call(methods.ExchangeDeclare("x", "fanout", auto_delete=True), expect=methods.ExchangeDeclareOk)
    peer.declare("q")
    peer.declare("mine", exclusive=True)
    for name in ("q", "mine"):
        peer.call(methods.QueueBind(name, "x"), expect=methods.QueueBindOk)
    peer.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk)
    assert "x" in world.replayed().broker.state.vhosts["/"].router.exchanges
    peer.leave()
    assert "x" not in world.replayed().broker.state.vhosts["/"].router.exchanges
