"""Each cell of the table of rights over AMQP: with the right and without it, at the root and through a front."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

import pytest

from pandomq import methods
from pandomq.broker.administration import rights
from pandomq.broker.administration.permissions import Right
from pandomq.broker.administration.rights import AMQP, QUEUE, ROUTING_KEY, Operation
from pandomq.broker.log.commands import PutPermissions, PutTopicPermissions
from pandomq.methods import Method
from tests.unit.broker.conversation import Peer, World
from tests.unit.cluster.proxy.pipe_world import Cluster

KEY: Final = "k"
NAMES: Final = {
    QUEUE: "q",
    rights.EXCHANGE: "t",
    rights.SOURCE: "t",
    rights.DESTINATION: "d",
    rights.DEAD_LETTERS: "dead",
    rights.ALTERNATE: "other",
}


class Trial(NamedTuple):
    ask: Callable[[Peer], object]
    names: Mapping[str, str] = MappingProxyType({})
    """Of objects that are called otherwise than in NAMES."""
    on_top_of: Operation | None = None


def _say(method: Method) -> Callable[[Peer], object]:
    return lambda peer: peer.send(method)


TRIALS: Final = {
    rights.QUEUE_DECLARE.name: Trial(_say(methods.QueueDeclare("new")), {QUEUE: "new"}),
    rights.QUEUE_DECLARE_PASSIVE.name: Trial(_say(methods.QueueDeclare("q", passive=True))),
    rights.QUEUE_DECLARE_DEAD_LETTERS.name: Trial(
        _say(methods.QueueDeclare("new", arguments={"x-dead-letter-exchange": "dead"})),
        {QUEUE: "new"},
        rights.QUEUE_DECLARE,
    ),
    rights.QUEUE_DELETE.name: Trial(_say(methods.QueueDelete("q"))),
    rights.QUEUE_PURGE.name: Trial(_say(methods.QueuePurge("q"))),
    rights.QUEUE_BIND.name: Trial(_say(methods.QueueBind("q", "t", KEY))),
    rights.QUEUE_UNBIND.name: Trial(_say(methods.QueueUnbind("q", "t", KEY))),
    rights.EXCHANGE_DECLARE.name: Trial(_say(methods.ExchangeDeclare("new", "topic")), {rights.EXCHANGE: "new"}),
    rights.EXCHANGE_DECLARE_PASSIVE.name: Trial(_say(methods.ExchangeDeclare("t", passive=True))),
    rights.EXCHANGE_DECLARE_ALTERNATE.name: Trial(
        _say(methods.ExchangeDeclare("new", "topic", arguments={"alternate-exchange": "other"})),
        {rights.EXCHANGE: "new"},
        rights.EXCHANGE_DECLARE,
    ),
    rights.EXCHANGE_DELETE.name: Trial(_say(methods.ExchangeDelete("d")), {rights.EXCHANGE: "d"}),
    rights.EXCHANGE_BIND.name: Trial(_say(methods.ExchangeBind("d", "t", KEY))),
    rights.EXCHANGE_UNBIND.name: Trial(_say(methods.ExchangeUnbind("d", "t", KEY))),
    rights.BASIC_PUBLISH.name: Trial(lambda peer: peer.publish("t", KEY)),
    rights.BASIC_CONSUME.name: Trial(_say(methods.BasicConsume("q", "c"))),
    rights.BASIC_GET.name: Trial(_say(methods.BasicGet("q"))),
}
TRIED: Final = [operation for operation in AMQP if operation.name in TRIALS]
OF_THE_CHANNEL: Final = {
    "basic.qos": methods.BasicQos(0, 1, False),
    "basic.cancel": methods.BasicCancel("missing"),
    "basic.recover": methods.BasicRecover(True),
    "basic.recover-async": methods.BasicRecoverAsync(True),
    "basic.ack": methods.BasicAck(0, True),
    "basic.nack": methods.BasicNack(0, True, True),
    "tx.select": methods.TxSelect(),
    "confirm.select": methods.ConfirmSelect(),
    "channel.flow": methods.ChannelFlow(True),
    "access.request": methods.AccessRequest("realm", False, True, True, True, True),
    "channel.close": methods.ChannelClose(200, "", 0, 0),
}
FOLLOWING: Final = {"channel.open", "basic.reject", "tx.commit", "tx.rollback"}
"""They are asked by all others, or need something first that has a right of its own."""


class Scene:
    """A queue, exchanges, and a user who may do nothing."""

    def __init__(self, *, through_front: bool) -> None:
        self._root = root = World()
        self._cluster = Cluster(root=root) if through_front else None
        peer = root.peer()
        peer.declare("q")
        for name in ("t", "d"):
            peer.call(methods.ExchangeDeclare(name, "topic"), expect=methods.ExchangeDeclareOk)
        root.admit("ann", "^$", "^$", "^$")
        self._settle()
        self.ann = (root if self._cluster is None else self._cluster.front).peer("ann")

    def _settle(self) -> None:
        if self._cluster is not None:
            self._cluster.settle()

    def grant(self, granted: list[tuple[Right, str]], *, key: str) -> None:
        patterns = ["|".join(f"^{name}$" for one, name in granted if one is right) for right in Right]
        commands = (PutPermissions("/", "ann", *patterns), PutTopicPermissions("/", "ann", "t", key, key))
        assert self._root.administer(*commands) is None
        self._settle()

    def refusal(self, ask: Callable[[Peer], object]) -> int:
        """The code with which the channel is closed; 0 if it is not."""
        ask(self.ann)
        self._settle()
        closes = [method for method in self.ann.heard() if isinstance(method, methods.ChannelClose)]
        if not closes:
            return 0
        assert "refused for user 'ann'" in closes[0].reply_text
        return closes[0].reply_code

    def topology(self) -> object:
        vhost = self._root.broker.state.vhosts["/"]
        exchanges = vhost.router.exchanges
        return set(vhost.queues), {name: len(list(exchange.bindings())) for name, exchange in exchanges.items()}


def needed(operation: Operation) -> list[tuple[str, str, tuple[Right, ...]]]:
    """Objects, their names, and rights of which one is needed."""
    trial = TRIALS[operation.name]
    names = {**NAMES, **trial.names}
    base = {} if trial.on_top_of is None else trial.on_top_of.needs
    both = chain(base.items(), operation.needs.items())
    return [(what, names[what], any_of) for what, any_of in both if what != ROUTING_KEY]


def cells() -> Iterator[tuple[Operation, int]]:
    for operation in TRIED:
        for lacking in range(len(needed(operation))):
            yield operation, lacking


THROUGH: Final = pytest.mark.parametrize("through_front", [False, True], ids=["at the root", "through a front"])


def test_each_operation_is_tried() -> None:
    tried = TRIALS.keys() | OF_THE_CHANNEL.keys() | FOLLOWING
    assert tried == {operation.name for operation in AMQP}


@THROUGH
@pytest.mark.parametrize("operation", TRIED, ids=lambda operation: operation.name)
def test_the_rights_in_the_table_are_enough(operation: Operation, through_front: bool) -> None:
    alternatives = max(len(any_of) for _, _, any_of in needed(operation))
    for choice in range(alternatives):
        scene = Scene(through_front=through_front)
        scene.grant([(any_of[choice % len(any_of)], name) for _, name, any_of in needed(operation)], key=f"^{KEY}$")
        assert scene.refusal(TRIALS[operation.name].ask) == 0


@pytest.mark.proves("R38")
@THROUGH
@pytest.mark.parametrize(("operation", "lacking"), list(cells()), ids=lambda value: getattr(value, "name", value))
def test_without_one_of_them_it_is_refused(operation: Operation, lacking: int, through_front: bool) -> None:
    scene = Scene(through_front=through_front)
    needs = needed(operation)
    _, missing_name, missing_rights = needs[lacking]
    granted = [(right, name) for number, (_, name, any_of) in enumerate(needs) for right in any_of if number != lacking]
    # All that is not needed on the object does not help.
    granted += [(right, missing_name) for right in Right if right not in missing_rights]
    unneeded = {(right, missing_name) for right in missing_rights}
    before = scene.topology()
    scene.grant([one for one in granted if one not in unneeded], key=f"^{KEY}$")
    assert scene.refusal(TRIALS[operation.name].ask) == 403
    assert scene.topology() == before


@pytest.mark.proves("R38")
@THROUGH
@pytest.mark.parametrize(
    "operation", [one for one in TRIED if ROUTING_KEY in one.needs], ids=lambda operation: operation.name
)
def test_without_the_routing_key_it_is_refused(operation: Operation, through_front: bool) -> None:
    scene = Scene(through_front=through_front)
    before = scene.topology()
    scene.grant([(right, name) for _, name, any_of in needed(operation) for right in any_of], key="^other$")
    assert scene.refusal(TRIALS[operation.name].ask) == 403
    assert scene.topology() == before


@THROUGH
@pytest.mark.parametrize("name", OF_THE_CHANNEL)
def test_methods_about_the_channel_need_no_right(name: str, through_front: bool) -> None:
    scene = Scene(through_front=through_front)
    assert scene.refusal(_say(OF_THE_CHANNEL[name])) == 0
    assert scene.ann.client.failed is False
