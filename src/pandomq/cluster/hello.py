"""What brokers say of themselves when they link: who they are, and which cluster they belong to.

Both ends say hello, each with a nonce of its own; the octets of the two are what the proofs are about (`proof`), so
nothing in them can be changed on the way. Whether two brokers belong together is decided by `objection`, on both ends
and in the same words.

A broker dials another one for a link, or for a *tunnel*: a connection that stands for one of its clients, for whom it
vouches in its hello. A *trunk* is a tunnel that stands for the broker itself. By a *passage* it has a third broker pass
on what it says to one that it does not reach.
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

VERSION: Final = 1
"""Of what is said on links. Brokers one version apart work together."""
OLDEST_VERSION: Final = 1

LINK: Final = ""
TUNNEL: Final = "tunnel"
TRUNK: Final = "trunk"
PASSAGE: Final = "passage"
"""What a broker dials another one for."""
_PURPOSES: Final = frozenset({LINK, TUNNEL, TRUNK, PASSAGE})

Text = Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)]
Octets = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]


class Hello(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    oldest: int
    newest: int
    """Versions of the link's protocol that it speaks."""
    name: Text
    nonce: Octets
    life: Text
    """Drawn at each start: tells a broker from another one of the same name, and knows itself."""
    expected: Text = ""
    """Whom it believes to have dialed; nothing if it does not know, or was dialed."""
    cluster_id: Text = ""
    """Empty unless its store belongs to a cluster."""
    address: Text = ""
    """Where it can be dialed."""
    amqp: Text = ""
    http: Text = ""
    """Where its clients find it."""
    version: Text = ""
    """Of the program, for people."""
    members: Annotated[tuple[tuple[Text, Text], ...], msgspec.Meta(max_length=INTRODUCED_MAX)] = ()
    """The primaries that it knows, and where they are dialed: for those who know only this one."""
    purpose: Text = LINK
    user: Text = ""
    """Of the client for whom it vouches, who has logged in there."""
    peer: Text = ""
    """That client's connection, by name."""
    properties: Annotated[bytes, msgspec.Meta(max_length=VOUCHED_PROPERTIES_BYTES_MAX)] = b""
    """What that client says of itself, as a field table."""
    client: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The number of that client's connection in this life of its broker; 0 of none."""
    data: Text = ""
    data_tls: Text = ""
    """Where its data port is, without TLS and with it."""
    beyond: Text = ""
    """Of a passage: whom it is to lead to."""
    through: Text = ""
    """Of all else: who passes it on; nothing if it came directly."""


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """What was dialed says hello in its turn, and proves that it has the key."""

    hello: bytes
    proof: bytes


class Proven(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """And so does the one who dialed."""

    proof: bytes


class Objection(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """There will be no link."""

    reason: Annotated[str, msgspec.Meta(max_length=REASON_BYTES_MAX)]
    lasting: bool = True
    """Trying again soon will not help."""


class BadHello(ValueError):
    """What a peer said is no hello, or no answer to one."""


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
        raise BadHello("its hello is too long")
    try:
        return _hello_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadHello(f"its hello cannot be read: {error}") from None


def decode_answer(data: bytes) -> Welcome | Proven | Objection:
    """Raises BadHello."""
    try:
        return _answer_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadHello(f"its answer cannot be read: {error}") from None


def objection(dialing: Hello, dialed: Hello) -> str | None:
    """Why these two should not be linked, as both of them will say it; None if they should."""
    if dialing.newest < dialed.oldest or dialing.oldest > dialed.newest:
        return (
            f"{dialing.name} speaks versions {dialing.oldest} to {dialing.newest} of the link protocol, "
            f"{dialed.name} {dialed.oldest} to {dialed.newest}"
        )
    if dialing.purpose not in _PURPOSES:
        return f"{dialing.name} asks {dialed.name} for a {dialing.purpose}, which it does not know"
    # A root has clients of its own behind tunnels, from before it was elected: those lead from it to itself.
    itself = dialing.life == dialed.life
    if itself and dialing.purpose == LINK:
        return f"{dialing.name} dialed itself: its own address is given for {dialing.expected or 'another broker'}"
    if dialing.name == dialed.name and not itself:
        return f"both brokers are named {dialing.name}"
    if dialing.expected and dialing.expected != dialed.name:
        return f"{dialing.name} dialed {dialing.expected}, but the broker at that address is {dialed.name}"
    if dialing.cluster_id and dialed.cluster_id and dialing.cluster_id != dialed.cluster_id:
        return f"{dialing.name} belongs to cluster {dialing.cluster_id}, {dialed.name} to cluster {dialed.cluster_id}"
    return None
