"""An exception that nobody expects harms the client whose request raised it, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import methods
from pandomq.broker import hooks
from pandomq.broker.broker import Broker
from pandomq.broker.channel import Channel
from pandomq.broker.containment import StateInDoubt
from pandomq.broker.publishing import publishing
from pandomq.broker.publishing.deduplication import Deduplication
from pandomq.broker.publishing.named_producers import NamedProducers
from pandomq.properties import Properties
from tests.unit.broker.conversation import World
from tests.unit.broker.staging_scene import STAGED, frames, prepared


class Bug(Exception):
    pass


def broken(_broker: Broker, _channel: Any, _method: Any) -> None:
    raise Bug


def broken_late(broker: Broker, channel: Any, method: Any) -> None:
    Broker.handlers[type(method)](broker, channel, method)
    raise Bug


def with_handler(world: World, method: type[methods.Method], handler: Any) -> None:
    world.broker.handlers = {**Broker.handlers, method: handler}  # type: ignore[misc]


@pytest.mark.proves("R38")
def test_a_client_whose_request_raises_is_closed_and_others_go_on() -> None:
    world = World()
    with_handler(world, methods.BasicQos, broken)
    culprit, bystander = world.peer(), world.peer()
    bystander.call(methods.QueueDeclare("q"), expect=methods.QueueDeclareOk)
    bystander.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    culprit.say(methods.BasicQos(0, 1, False))
    bystander.say_publish("", "q")
    world.run([(culprit.client, culprit.take_inputs()), (bystander.client, bystander.take_inputs())])
    assert world.closed[culprit.client].reply_code == 541
    assert bystander.client not in world.closed
    assert [type(heard.method) for heard in bystander.hear()] == [methods.BasicAck]
    [(client, error)] = world.broker.containment.take()
    assert client is culprit.client and isinstance(error, Bug)
    assert not world.broker.containment.caught


def test_the_consumers_and_messages_of_a_failed_client_are_released() -> None:
    world = World()
    culprit, bystander = world.peer(), world.peer()
    bystander.call(methods.QueueDeclare("q"), expect=methods.QueueDeclareOk)
    bystander.publish("", "q", b"m")
    culprit.send(methods.BasicConsume("q"))
    assert [type(heard.method) for heard in culprit.hear()] == [methods.BasicConsumeOk, methods.BasicDeliver]
    with_handler(world, methods.BasicQos, broken)
    culprit.send(methods.BasicQos(0, 1, False))
    world.run([])
    got = bystander.call(methods.BasicGet("q"), expect=methods.BasicGetOk)
    assert got.redelivered


def test_a_request_that_raises_after_it_changed_something_leaves_the_state_in_doubt() -> None:
    world = World()
    with_handler(world, methods.QueueDeclare, broken_late)
    culprit = world.peer()
    with pytest.raises(StateInDoubt) as doubt:
        culprit.send(methods.QueueDeclare("q", durable=True))
    assert doubt.value.client is culprit.client and isinstance(doubt.value.__cause__, Bug)
    assert culprit.hear() == []


@pytest.mark.parametrize("durable", [True, False])
def test_a_publish_that_raises_in_the_middle_of_a_run(durable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    culprit, bystander = world.peer(), world.peer()
    bystander.call(methods.QueueDeclare("q", durable=durable), expect=methods.QueueDeclareOk)
    publish = publishing.publish

    def broken_publish(broker: Any, channel: Any, message: Any, flags: int) -> None:
        if message.routing_key == "poison":
            raise Bug
        publish(broker, channel, message, flags)

    monkeypatch.setattr(hooks, "publish", broken_publish)
    culprit.say_publish("", "q", b"before").say_publish("", "poison").say_publish("", "q", b"after").flush()
    assert world.closed[culprit.client].reply_code == 541
    assert bystander.call(methods.BasicGet("q"), expect=methods.BasicGetOk).message_count == 0


def test_a_client_that_cannot_be_cleared_away_leaves_the_state_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with_handler(world, methods.BasicQos, broken)
    culprit = world.peer()

    def fail() -> None:
        raise Bug

    monkeypatch.setattr(type(world.broker.faults), "finish", lambda faults: fail())
    with pytest.raises(StateInDoubt):
        culprit.send(methods.BasicQos(0, 1, False))


def test_a_staged_message_that_cannot_be_published_is_never_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, sink = prepared(("q", "poison"))
    sink.stage(frames("before") + frames("failing", key="poison") + frames("after"))
    publish = publishing.publish

    def broken_publish(broker: Any, channel: Any, message: Any, flags: int) -> None:
        if message.routing_key == "poison":
            raise Bug
        publish(broker, channel, message, flags)

    monkeypatch.setattr(hooks, "publish", broken_publish)
    with pytest.raises(StateInDoubt) as doubt:
        sink.commit((0, "a", 1))
    assert doubt.value.client is None and isinstance(doubt.value.__cause__, Bug)
    assert sink.heard() == [STAGED]


@pytest.mark.parametrize(
    ("owner", "name"), [(NamedProducers, "_add"), (Deduplication, "_touch"), (Deduplication, "settle")]
)
def test_a_numbered_publish_that_raises_amid_the_table_of_producers_leaves_the_state_in_doubt(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    culprit = world.peer()
    done = getattr(owner, name)

    def fail(*args: Any, **more: Any) -> None:
        done(*args, **more)
        raise Bug

    monkeypatch.setattr(owner, name, fail)
    # No queue takes it: the kernel counts no change.
    headers = {"x-producer": "p", "x-sequence": 1}
    culprit.say_publish("", "nowhere", b"m", Properties(headers=headers))
    with pytest.raises(StateInDoubt) as doubt:
        culprit.flush()
    assert doubt.value.client is culprit.client and isinstance(doubt.value.__cause__, Bug)


def test_a_return_that_cannot_be_sent_closes_the_publisher_and_no_other_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    culprit, bystander = world.peer(), world.peer()
    culprit.say_publish("", "nowhere", mandatory=True)
    bystander.say(methods.BasicQos(0, 1, False))

    def fail(*_: object) -> None:
        raise Bug

    monkeypatch.setattr(Channel, "reply_with_content", fail)
    with pytest.raises(StateInDoubt) as doubt:
        world.run([(culprit.client, culprit.take_inputs()), (bystander.client, bystander.take_inputs())])
    assert doubt.value.client is culprit.client and isinstance(doubt.value.__cause__, Bug)
