"""Two brokers that meet: a dialer, and the accepting end as `node` builds it from a connection and an acceptance."""

from __future__ import annotations

from random import Random
from typing import Any

from pandomq.cluster.acceptance import Acceptance, NotAccepted
from pandomq.cluster.dialer import Dialer
from pandomq.cluster.hello import Hello
from pandomq.cluster.introduction import LinkRefused
from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S, LINK_MESSAGE_BYTES_MAX, NONCE_BYTES
from pandomq.cluster.peer_messages import CHANNEL
from pandomq.kernel import Scanner
from pandomq.methods import ChannelOpen, ChannelOpenOk, MethodInput
from pandomq.wire.connection import Connection
from pandomq.wire.inputs import Input, Login, OpenVhost, Secured
from pandomq.wire.offer import Agreed, Offer
from pandomq.wire.sasl import CLUSTER

KEY = b"a key of thirty-two octets, or so"
NOW_MS = 1_700_000_000_000
OFFER = Offer(
    version="test",
    mechanisms=("PLAIN", CLUSTER),
    proposal=Agreed(CHANNEL, LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S),
    message_bytes_max=LINK_MESSAGE_BYTES_MAX,
)
_random = Random(1)


def hello(name: str, **said: Any) -> Hello:
    defaults: dict[str, Any] = {"oldest": 1, "newest": 1, "life": f"life of {name}", "cluster_id": "c1"}
    return Hello(name=name, nonce=_random.randbytes(NONCE_BYTES), **{**defaults, **said})


class Meeting:
    """`refused` is what the dialing side hears, `not_accepted` what the dialed one does."""

    def __init__(
        self, dialing: Hello, dialed: Hello, *, dialing_key: bytes = KEY, dialed_key: bytes = KEY, offer: Offer = OFFER
    ) -> None:
        self.dialer = Dialer(dialing_key, dialing, NOW_MS)
        self.acceptance = Acceptance(dialed_key, dialed)
        self.connection = Connection(offer, Scanner, NOW_MS)
        self.refused: LinkRefused | None = None
        self.not_accepted: NotAccepted | None = None
        self.accepted: Hello | None = None
        self.inputs: list[Input] = []
        """The inputs after the channel was opened."""

    def run(self) -> Meeting:
        """Until nobody has anything to say."""
        while True:
            sent = self.dialer.data_to_send()
            if sent:
                self.heard(sent)
            answered = self.connection.data_to_send()
            if answered and self.refused is None:
                try:
                    self.dialer.receive(answered)
                except LinkRefused as refused:
                    self.refused = refused
            if not sent and not answered:
                return self

    def heard(self, data: bytes) -> None:
        inputs = self.connection.receive(data)
        while inputs:
            inputs = self._handle(inputs)

    def _handle(self, inputs: list[Input]) -> list[Input]:
        ahead: list[Input] = []
        for item in inputs:
            try:
                match item:
                    case Login():
                        ahead += self.connection.challenge(self.acceptance.greet(item.password))
                    case Secured(response):
                        self.accepted = self.acceptance.accept(response)
                        ahead += self.connection.accept_login(OFFER)
                    case OpenVhost():
                        ahead += self.connection.accept_vhost(NOW_MS)
                    case MethodInput(channel, ChannelOpen()) if channel == CHANNEL:
                        self.connection.send(CHANNEL, ChannelOpenOk())
                    case _:
                        self.inputs.append(item)
            except NotAccepted as refused:
                self.not_accepted = refused
                if refused.answer is not None:
                    self.connection.challenge(refused.answer)
                self.connection.hang_up()
        return ahead
