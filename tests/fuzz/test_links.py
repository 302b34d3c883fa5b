"""Hostile octets at the port for brokers: from peers without the key, and from peers with it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from random import Random

import pytest

from pandomq.cluster.dialer import Dialer
from pandomq.cluster.hello import Hello
from pandomq.cluster.introduction import IntroductionStage, LinkRefused
from pandomq.cluster.limits import LINK_MESSAGE_BYTES_MAX, NONCE_BYTES
from pandomq.cluster.peer_messages import PeerMessageKind, pack
from pandomq.ids import Term
from pandomq.methods import BasicPublish, ChannelOpen, QueueDeclare
from pandomq.properties import Properties, encode_header
from pandomq.replica.protocol.messages import Greeting, Probe, encode
from pandomq.replica.protocol.position import START
from pandomq.wire.codec import encode_frame
from tests.fuzz.mutations import mutated
from tests.support.frames import frame
from tests.unit.node.link_world import CLUSTER, KEY, End, LinkWorld

SEED = 20_261_115
STEP_MS = 3


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The node logs every refusal, of which there are hundreds here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def world() -> LinkWorld:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    return world


class Stranger:
    """Dials n1 as a broker does, and keeps its answers, piece by piece."""

    def __init__(self, world: LinkWorld, random: Random, key: bytes = KEY, name: str = "stranger") -> None:
        self.world = world
        hello = Hello(
            oldest=1,
            newest=1,
            name=name,
            nonce=random.randbytes(NONCE_BYTES),
            life=random.randbytes(8).hex(),
            cluster_id=CLUSTER,
        )
        self.dialer = Dialer(key, hello, world.now_ms)
        self.end: End = world.connect(world.machines["n1"])
        self.end.take = self._take  # type: ignore[method-assign]
        self.said: list[bytes] = []

    def _take(self, data: bytes) -> None:
        self.dialer.receive(data)

    def say(self, data: bytes) -> None:
        if data and self.end.open:
            self.end.write(data)
            self.world.run(STEP_MS)

    def shake_hands(self) -> None:
        while self.dialer.stage is not IntroductionStage.OPEN:
            self.said.append(self.dialer.data_to_send())
            self.say(self.said[-1])


def _messages() -> list[bytes]:
    header = (0, "", Term(1))
    return [
        b"".join(map(bytes, pack(PeerMessageKind.REPLICA, encode(message))))
        for message in (Greeting(*header, 7, 100, False, False, START), Probe(*header, 3))
    ]


def _still_well(world: LinkWorld) -> None:
    world.until(lambda: world.root is not None)
    world.until(world.all_linked)


@pytest.mark.parametrize("key", [KEY, b"another key"])
def test_a_spoiled_handshake_harms_no_broker(world: LinkWorld, key: bytes) -> None:
    random = Random(SEED)
    recorded = Stranger(world, random)
    recorded.shake_hands()
    recorded.end.close()
    conversation = [*recorded.said, *_messages()]
    for _ in range(150):
        stranger = Stranger(world, random, key)
        stranger.end.take = lambda data: None  # type: ignore[method-assign]
        stranger.say(mutated(random, [conversation]))
        stranger.end.close()
        world.run(STEP_MS)
        # A repeated or mutated old conversation proves nothing.
        assert "stranger" not in world.machines["n1"].links
    _still_well(world)


def _published(exchange: str, key: str) -> bytes:
    header = encode_header(1, Properties())
    return encode_frame(1, BasicPublish(exchange, key)) + frame(2, 1, header) + frame(3, 1, b"x")


def _too_large() -> bytes:
    """Returns the beginning of a message that is above the limit."""
    header = encode_header(LINK_MESSAGE_BYTES_MAX + 1, Properties())
    return encode_frame(1, BasicPublish("", "replica")) + frame(2, 1, header)


@pytest.mark.parametrize(
    "said",
    [
        _too_large(),
        encode_frame(1, QueueDeclare("q")),
        encode_frame(1, BasicPublish("", "unheard of"))
        + frame(2, 1, encode_header(1, Properties()))
        + frame(3, 1, b"x"),
        encode_frame(1, BasicPublish("amq.direct", "replica"))
        + frame(2, 1, encode_header(1, Properties()))
        + frame(3, 1, b"x"),
        frame(1, 1, b"\xff" * 200_000),
        frame(3, 1, b"out of place"),
    ],
)
def test_frames_that_do_not_belong_on_a_link_end_it(world: LinkWorld, said: bytes) -> None:
    stranger = Stranger(world, Random(SEED))
    stranger.shake_hands()
    assert "stranger" in world.machines["n1"].links
    with pytest.raises(LinkRefused, match="the peer closed with a reason"):
        stranger.say(said)
    stranger.end.close()
    _still_well(world)
    assert "stranger" not in world.machines["n1"].links


def test_a_peer_that_publishes_before_it_has_opened_a_channel_is_closed(world: LinkWorld) -> None:
    stranger = Stranger(world, Random(SEED))
    while stranger.dialer.stage is not IntroductionStage.OPENING:
        stranger.say(stranger.dialer.data_to_send())
    with pytest.raises(LinkRefused, match="a channel that is not open"):
        stranger.say(stranger.dialer.data_to_send().split(encode_frame(1, ChannelOpen()))[0] + _messages()[0])
    _still_well(world)


def test_a_spoiled_message_of_a_broker_harms_its_own_link_at_most(world: LinkWorld) -> None:
    """The peer has the key. That alone does not make its messages valid."""
    random = Random(SEED)
    term = world.node("n1").peers.knowledge.term
    for _ in range(60):
        stranger = Stranger(world, random, name=f"stranger {random.randrange(3)}")
        stranger.shake_hands()
        stranger.end.take = lambda data: None  # type: ignore[method-assign]
        stranger.say(mutated(random, [_messages()]))
        stranger.say(random.choice(_messages()))
        stranger.end.close()
        world.run(STEP_MS)
    _still_well(world)
    assert world.node("n1").peers.knowledge.term == term
    world.run(100)
    assert set(world.machines["n1"].links) == {"n2", "n3"}
