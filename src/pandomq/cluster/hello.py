"""The hello of a broker on a new link: its identity, and its cluster.

Both ends send a hello, each with its own nonce; the proofs cover the octets of both (`proof`), so nothing in them can
be changed on the way. `objection` decides whether two brokers belong together, on both ends and with the same text.

A broker dials another one for a link, or for a *tunnel*: a connection that stands for one of its clients, for which it
vouches in its hello. A *trunk* is a tunnel that stands for the broker itself. Through a *passage* a third broker relays
its messages to one that it cannot reach.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from pandomq.cluster.limits import (
    HELLO_BYTES_MAX,
    INTRODUCED_MAX,
    NAME_BYTES_MAX,
    NONCE_BYTES,
    REASON_BYTES_MAX,
    VOUCHED_PROPERTIES_BYTES_MAX,
)

VERSION: Final = 2
"""The version of the links' protocol. Brokers one version apart work together. 2 has basic.held and requests over
HTTP."""
OLDEST_VERSION: Final = 1
PASSED_REQUESTS_VERSION: Final = 2
"""Requests over HTTP are forwarded on links since this version (`passed_requests`)."""

LINK: Final = ""
TUNNEL: Final = "tunnel"
TRUNK: Final = "trunk"
PASSAGE: Final = "passage"
"""The purpose for which a broker dials another one."""
_PURPOSES: Final = frozenset({LINK, TUNNEL, TRUNK, PASSAGE})

Text = Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)]
Octets = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]


class Hello(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    oldest: int
    newest: int
    """The oldest and the newest supported version of the links' protocol."""
    name: Text
    nonce: Octets
    life: Text
    """Random for each start: distinguishes a broker from another one of the same name, and detects a connection to
    itself."""
    expected: Text = ""
    """The name of the broker that it expects to have dialed; empty if it does not know, or was dialed."""
    cluster_id: Text = ""
    """Empty unless its store belongs to a cluster."""
    address: Text = ""
    """The address at which others can dial it."""
    amqp: Text = ""
    http: Text = ""
    """Its addresses for clients."""
    version: Text = ""
    """The program's version, for people."""
    members: Annotated[tuple[tuple[Text, Text], ...], msgspec.Meta(max_length=INTRODUCED_MAX)] = ()
    """The primaries that it knows, and their addresses: for brokers that know only this one."""
    purpose: Text = LINK
    user: Text = ""
    """The client for which it vouches, which has logged in there."""
    peer: Text = ""
    """The name of the client's connection."""
    properties: Annotated[bytes, msgspec.Meta(max_length=VOUCHED_PROPERTIES_BYTES_MAX)] = b""
    """The client's properties, as a field table."""
    client: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The number of that client's connection in this run of its broker; 0 if there is none."""
    data: Text = ""
    data_tls: Text = ""
    """The addresses of its data port, without TLS and with it."""
    beyond: Text = ""
    """The broker at the other end of a passage."""
    through: Text = ""
    """The relaying broker, for other purposes than a passage; empty for a direct connection."""


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The reply of the dialed broker: its hello, and its proof that it has the key."""

    hello: bytes
    proof: bytes


class Proven(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The proof of the dialing broker."""

    proof: bytes


class Objection(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A rejection: the connection does not become a link."""

    reason: Annotated[str, msgspec.Meta(max_length=REASON_BYTES_MAX)]
    lasting: bool = True
    """Another attempt soon will not help."""


class BadHello(ValueError):
    """The peer's octets are no hello, or no answer to one."""


_encoder = msgspec.msgpack.Encoder()
_hello_decoder: msgspec.msgpack.Decoder[Hello] = msgspec.msgpack.Decoder(Hello)
_answer_decoder: msgspec.msgpack.Decoder[Welcome | Proven | Objection] = msgspec.msgpack.Decoder(
    Welcome | Proven | Objection
)


def encode(said: Hello | Welcome | Proven | Objection) -> bytes:
    return _encoder.encode(said)


def decode_hello(data: bytes) -> Hello:
    """Raises BadHello."""
    if len(data) > HELLO_BYTES_MAX:
        raise BadHello("the peer's greeting is too long")
    try:
        return _hello_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadHello(f"the peer's greeting is malformed: {error}") from None


def decode_answer(data: bytes) -> Welcome | Proven | Objection:
    """Raises BadHello."""
    try:
        return _answer_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadHello(f"the peer's answer is malformed: {error}") from None


def objection(dialing: Hello, dialed: Hello) -> str | None:
    """The reason why these two must not be linked, which both of them report; None if they may."""
    if dialing.newest < dialed.oldest or dialing.oldest > dialed.newest:
        return (
            f"{dialing.name} supports versions {dialing.oldest} to {dialing.newest} of the link protocol, "
            f"{dialed.name} supports {dialed.oldest} to {dialed.newest}"
        )
    if dialing.purpose not in _PURPOSES:
        return f"{dialing.name} requests a {dialing.purpose} from {dialed.name}, which does not support it"
    # A root has clients of its own behind tunnels, from before it was elected: those connect it to itself.
    itself = dialing.life == dialed.life
    if itself and dialing.purpose == LINK:
        return (
            f"{dialing.name} connected to itself: its own address is configured for "
            f"{dialing.expected or 'another broker'}"
        )
    if dialing.name == dialed.name and not itself:
        return f"both brokers are named {dialing.name}: rename one of them"
    if dialing.expected and dialing.expected != dialed.name:
        return f"{dialing.name} connected to {dialing.expected}, but the broker at that address is {dialed.name}"
    if dialing.cluster_id and dialed.cluster_id and dialing.cluster_id != dialed.cluster_id:
        return f"{dialing.name} belongs to cluster {dialing.cluster_id}, {dialed.name} to cluster {dialed.cluster_id}"
    return None
