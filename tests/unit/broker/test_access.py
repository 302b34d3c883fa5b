"""The seam for permissions: everything that needs a right asks for it there, and a refusal closes the channel."""

import pytest

from pandomq import methods
from pandomq.broker.access import Right
from tests.unit.broker.conversation import World


class Recorder:
    """Allows what it was told to; remembers what it was asked."""

    def __init__(self, refused: Right | None = None) -> None:
        self.refused = refused
        self.asked: list[tuple[Right, str]] = []

    def allow(self, user: str, vhost: str, right: Right, name: str) -> bool:
        assert (user, vhost) == ("guest", "/")
        self.asked.append((right, name))
        return right is not self.refused


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        (methods.QueueDeclare("q"), [(Right.CONFIGURE, "q")]),
        (
            methods.QueueDeclare("dl", arguments={"x-dead-letter-exchange": "x"}),
            [(Right.CONFIGURE, "dl"), (Right.READ, "dl"), (Right.WRITE, "x")],
        ),
        (methods.QueueDelete("q"), [(Right.CONFIGURE, "q")]),
        (methods.QueuePurge("q"), [(Right.READ, "q")]),
        (methods.QueueBind("q", "amq.topic"), [(Right.WRITE, "q"), (Right.READ, "amq.topic")]),
        (methods.QueueUnbind("q", "amq.topic"), [(Right.WRITE, "q"), (Right.READ, "amq.topic")]),
        (methods.ExchangeDeclare("x", "direct"), [(Right.CONFIGURE, "x")]),
        (methods.ExchangeDelete("x"), [(Right.CONFIGURE, "x")]),
        (methods.ExchangeBind("amq.fanout", "amq.topic"), [(Right.WRITE, "amq.fanout"), (Right.READ, "amq.topic")]),
        (methods.BasicConsume("q"), [(Right.READ, "q")]),
        (methods.BasicGet("q"), [(Right.READ, "q")]),
    ],
)
def test_who_asks_for_what(method: methods.Method, asked: list[tuple[Right, str]]) -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    world.broker.permissions = recorder = Recorder()
    peer.send(method)
    assert recorder.asked == asked
    world.broker.permissions = Recorder(refused=asked[0][0])
    peer.hear()
    close = peer.refused(method)
    assert close.reply_code == 403
    assert close.reply_text.startswith(f"ACCESS_REFUSED - {asked[0][0].value} access to ")
    assert close.reply_text.endswith(f"'{asked[0][1]}' in vhost '/' refused for user 'guest'")


def test_publishing_asks_once_for_each_route() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    world.broker.permissions = recorder = Recorder()
    for _ in range(3):
        peer.publish("amq.direct", "k")
    assert recorder.asked == [(Right.WRITE, "amq.direct")]
    world.broker.permissions = Recorder(refused=Right.WRITE)
    peer.publish("amq.fanout", "k")
    assert peer.heard() == [
        methods.ChannelClose(
            403,
            "ACCESS_REFUSED - write access to exchange 'amq.fanout' in vhost '/' refused for user 'guest'",
            60,
            40,
        )
    ]
