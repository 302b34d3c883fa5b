"""A front's configuration: from a snapshot and commands, and from another snapshot when some were missed."""

from __future__ import annotations

from pandomq import methods
from pandomq.broker.log.commands import (
    DeleteVhost,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutUser,
    PutVhost,
    encode_command,
)
from pandomq.broker.log.state_commands import commands_of
from tests.unit.cluster.proxy.pipe_world import Cluster


def configuration(broker: object) -> list[bytes]:
    return [encode_command(command) for command in commands_of(broker.state)]  # type: ignore[attr-defined]


def same(cluster: Cluster) -> bool:
    assert cluster.root is not None
    wanted = configuration(cluster.root.broker)
    return all(sorted(configuration(front.broker)) == sorted(wanted) for front in cluster.fronts)


def change_much(cluster: Cluster) -> None:
    assert cluster.root is not None
    root = cluster.root
    root.administer(
        PutVhost("other"),
        PutUser("u", "", "scrypt", ()),
        PutPermissions("other", "u", ".*", ".*", ".*"),
        PutTopicPermissions("other", "u", "amq.topic", "a", "b"),
        PutPolicy("/", "p", "^q", "queues", 1, b'{"max-length": 5}'),
        PutLimits("vhost", "/", {"max-queues": 100}),
        PutLimits("user", "u", {"max-channels": 100}),
    )
    peer = root.peer()
    for name in ("e", "f"):
        peer.call(methods.ExchangeDeclare(name, "topic", durable=True), expect=methods.ExchangeDeclareOk)
    for name in ("q", "r"):
        peer.declare(name, durable=True)
        peer.call(methods.QueueBind(name, "e", "k"), expect=methods.QueueBindOk)
    peer.call(methods.ExchangeBind("f", "e", "x"), expect=methods.ExchangeBindOk)


def test_commands_give_a_front_the_state_of_the_root() -> None:
    cluster = Cluster()
    change_much(cluster)
    cluster.settle()
    assert same(cluster)


def test_a_second_snapshot_makes_it_that_too() -> None:
    cluster = Cluster()
    change_much(cluster)
    cluster.settle()
    assert cluster.root is not None
    peer = cluster.front.peer()
    peer.declare("mine", exclusive=True)
    peer.call(methods.QueueBind("mine", "e", "k"), expect=methods.QueueBindOk)
    # The changes from now on are missed.
    cluster.root.broker.on_command = None
    root = cluster.root.peer()
    for name in ("q", "new"):
        root.call(methods.QueueDelete(name), expect=methods.QueueDeleteOk)
        root.declare(name, durable=True, arguments={"x-max-length": 3})
    root.call(methods.QueueUnbind("r", "e", "k"), expect=methods.QueueUnbindOk)
    root.call(methods.ExchangeDelete("f"), expect=methods.ExchangeDeleteOk)
    root.call(methods.ExchangeDeclare("f", "fanout"), expect=methods.ExchangeDeclareOk)
    cluster.root.administer(
        PutUser("u", "", "scrypt", ("management",)),
        PutLimits("vhost", "/", {"max-queues": None}),
        DeleteVhost("other"),
        PutPolicy("/", "p", "^n", "queues", 1, b'{"max-length": 2}'),
    )
    assert not same(cluster)
    front = cluster.front.broker
    front.begin(cluster.root.broker.configuration(), 17)
    assert front.applied_index == 17
    assert same(cluster)
    cluster.root.peer().publish("e", "k", b"one")
    cluster.settle()
    assert peer.counts("mine") == (1, 0)


def test_entries_are_applied_once() -> None:
    cluster = Cluster()
    assert cluster.root is not None
    commands: list[bytes] = []
    cluster.root.broker.on_command = commands.append
    cluster.root.peer().declare("q")
    front = cluster.front.broker
    front.follow(5, commands)
    front.follow(5, commands)
    assert front.applied_index == 5
    assert "q" in front.state.vhosts["/"].queues


def test_clients_of_a_vhost_that_is_deleted_are_closed() -> None:
    cluster = Cluster()
    assert cluster.root is not None
    cluster.root.administer(PutVhost("v"), PutPermissions("v", "guest", ".*", ".*", ".*"))
    cluster.settle()
    peer, other = cluster.front.peer(vhost="v"), cluster.front.peer()
    peer.declare("mine", exclusive=True)
    peer.declare("q")
    other.declare("mine", exclusive=True)
    cluster.root.administer(DeleteVhost("v"))
    cluster.settle()
    assert peer.fault().reply_code == 320
    peer.leave()
    assert other.counts("mine") == (0, 0)
    assert [pipe.tunnel.vhost for pipe in cluster.front.pipes] == ["/"]
