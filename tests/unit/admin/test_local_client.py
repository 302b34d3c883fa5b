"""Clients inside the process, and the views that others have of them."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.errors import ConnectionFault, Fault
from pandomq.methods import (
    BasicAck,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ConfirmSelect,
    ConfirmSelectOk,
    Method,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)
from pandomq.node.clients.local_client import LocalClient, MethodReply
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from pandomq.properties import Properties, decode_header, encode_header

NOW_MS = 1_000_000


class Scene:
    def __init__(self) -> None:
        self.node = Node(NodeSettings(name="n", message_bytes_max=1_000_000), Random(1), NOW_MS)
        self.heard: list[MethodReply | Fault] = []

    def open(self, user: str = "guest", vhost: str = "/") -> LocalClient:
        return self.node.local_clients.open(user=user, vhost=vhost, on_answer=self.heard.append, now_ms=NOW_MS)

    def step(self) -> list[MethodReply | Fault]:
        """Returns the answers since the last step."""
        for _ in range(5):
            self.node.step(NOW_MS)
        heard, self.heard[:] = list(self.heard), []
        return heard

    def ask(self, client: LocalClient, *methods: Method) -> list[Method]:
        client.send(*methods)
        return [answer.method for answer in self.step() if isinstance(answer, MethodReply)]

    def publish(self, client: LocalClient, key: str, body: bytes = b"m") -> list[Method]:
        header = encode_header(len(body), Properties(message_id="id"))
        client.publish(BasicPublish("", key, mandatory=True), header, body)
        return [answer.method for answer in self.step() if isinstance(answer, MethodReply)]


def test_requests_are_answered_in_order_without_an_answer_to_the_channel_open() -> None:
    scene = Scene()
    client = scene.open()
    answers = scene.ask(client, QueueDeclare("a"), QueueDeclare("b"), QueueDelete("nosuch"))
    assert answers == [QueueDeclareOk("a", 0, 0), QueueDeclareOk("b", 0, 0), QueueDeleteOk(0)]


@pytest.mark.parametrize("size", [0, 1, 200_000, 1_000_000])
def test_contents_go_in_and_come_out_whole(size: int) -> None:
    scene = Scene()
    client = scene.open()
    scene.ask(client, QueueDeclare("q"))
    assert scene.ask(client, ConfirmSelect()) == [ConfirmSelectOk()]
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert scene.publish(client, "q", body) == [BasicAck(1, False)]
    client.send(BasicGet("q"), BasicGet("q"))
    first, second = scene.step()
    assert isinstance(first, MethodReply)
    assert isinstance(first.method, BasicGetOk)
    assert first.body == body
    assert decode_header(first.header) == (size, Properties(message_id="id"))
    assert isinstance(second, MethodReply)
    assert isinstance(second.method, BasicGetEmpty)


def test_an_unroutable_message_is_returned_before_its_confirm() -> None:
    scene = Scene()
    client = scene.open()
    scene.ask(client, ConfirmSelect())
    assert [type(method) for method in scene.publish(client, "nosuch")] == [BasicReturn, BasicAck]


def test_a_fault_comes_once_and_last() -> None:
    scene = Scene()
    client = scene.open()
    client.send(QueueDeclare("q"), QueueDeclare("nosuch", passive=True), QueueDeclare("never"))
    answer, fault = scene.step()
    assert isinstance(answer, MethodReply)
    assert isinstance(fault, Fault)
    assert (fault.reply_code, fault.reply_text) == (404, "NOT_FOUND - no queue 'nosuch' in vhost '/'")
    client.close(NOW_MS)
    assert scene.node.views.queue("/", "never") is None


def test_a_fault_of_the_connection_is_reported_too() -> None:
    scene = Scene()
    client = scene.open()
    client.send(ChannelCloseOk(), QueueDeclare("q"))
    [fault] = [item for item in scene.step() if isinstance(item, Fault)]
    assert isinstance(fault, ConnectionFault)
    client.close(NOW_MS)
    scene.step()
    assert len(scene.node.local_clients) == 0


@pytest.mark.parametrize(("user", "vhost"), [("guest", "nosuch"), ("nobody", "/")])
def test_a_user_without_access_to_the_vhost_is_refused_at_once(user: str, vhost: str) -> None:
    with pytest.raises(ConnectionFault) as fault:
        Scene().open(user, vhost)
    assert fault.value.reply_code == 530


def test_unacked_messages_go_back_when_the_local_client_closes() -> None:
    scene = Scene()
    first, second = scene.open(), scene.open()
    scene.ask(first, QueueDeclare("q"))
    scene.publish(first, "q")
    scene.ask(first, BasicGet("q"))
    assert isinstance(scene.ask(second, BasicGet("q"))[0], BasicGetEmpty)
    first.close(NOW_MS)
    scene.step()
    [again] = scene.ask(second, BasicGet("q"))
    assert isinstance(again, BasicGetOk)
    assert again.redelivered


def test_settlements_have_their_effect_before_later_methods() -> None:
    scene = Scene()
    client = scene.open()
    scene.ask(client, QueueDeclare("q"))
    scene.publish(client, "q")
    scene.ask(client, BasicGet("q"))
    answers = scene.ask(client, BasicNack(1, multiple=True, requeue=False), ChannelClose(200, "", 0, 0))
    assert answers == [ChannelCloseOk()]
    view = scene.node.views.queue("/", "q")
    assert view is not None
    assert (view.ready, view.unacked) == (0, 0)


def test_after_the_close_methods_are_neither_handled_nor_answered() -> None:
    scene = Scene()
    client = scene.open()
    client.send(QueueDeclare("q"))
    client.close(NOW_MS)
    client.send(QueueDeclare("r"))
    assert scene.step() == []
    assert scene.node.views.queue("/", "r") is None
    client.close(NOW_MS)


def test_a_local_client_is_in_no_view() -> None:
    scene = Scene()
    client = scene.open()
    scene.ask(client, QueueDeclare("q"))
    views = scene.node.views
    assert list(views.connections()) == []
    assert list(views.channels()) == []
    assert list(views.client_sizes()) == []
    assert views.node().connections == 0
    assert [view.name for view in views.queues()] == ["q"]
