"""Hostile inputs over AMQP: every method with every argument, each on a channel of its own, many on one connection.

A fault closes a channel, so that the inputs on the others are still handled; an input that closes the connection comes
last. The number of handled inputs is the number of received `channel.open-ok`s.
"""

from __future__ import annotations

import struct
from random import Random
from typing import Final, NamedTuple

from tests.fuzz.live.values import OCTETS, TEXTS, delayed_table, encoded_table, some_number, some_text
from tests.fuzz.mutations import mutated, random_frame
from tests.support.fields import PROPERTIES, argument
from tests.support.frames import BODY, HEADER, METHOD, PROTOCOL_HEADER, frame
from tests.support.methods import LAYOUTS, encode

CHANNELS_MAX: Final = 120
_SIZES: Final = {"B": 2**8, "H": 2**16, "I": 2**32, "Q": 2**64}
FATAL: Final = tuple(name for name in LAYOUTS if name.startswith("connection.") or name.endswith("-ok"))
"""A client that sends one of these at the wrong time loses its connection."""
FATAL_TOO: Final = (
    *("basic.deliver", "basic.return", "basic.get-empty", "channel.open"),
    *("basic.settle", "basic.held"),
)
DEADLY_UNLESS: Final = {"requeue": True, "active": True, "immediate": False, "prefetch_size": 0}
"""Arguments of which AMQP, or RabbitMQ, has only one value."""
NOT_FOR_STREAMS: Final = ("queue.purge", "basic.get")
"""On a stream these close the client's connection."""
HARMLESS: Final = tuple(name for name in LAYOUTS if name not in (*FATAL, *FATAL_TOO))
OPEN_OK: Final = struct.pack(">HH", 20, 11)


class Login(NamedTuple):
    user: str
    password: str
    vhost: str


class AmqpBatch(NamedTuple):
    data: bytes
    inputs: int
    waits: bool
    """Whether the client reads to the end; otherwise it closes the connection at once."""
    first: int = 0
    """The number of octets that open the connection, before the first input."""


def opening(login: Login) -> bytes:
    steps = (
        (
            "connection.start-ok",
            {
                "client_properties": {},
                "mechanism": "PLAIN",
                "response": f"\0{login.user}\0{login.password}",
                "locale": "en_US",
            },
        ),
        ("connection.tune-ok", {"channel_max": 2047, "frame_max": 131072, "heartbeat": 0}),
        ("connection.open", {"virtual_host": login.vhost}),
    )
    return PROTOCOL_HEADER + b"".join(frame(METHOD, 0, encode(name, **given)) for name, given in steps)


def batch(random: Random, login: Login) -> AmqpBatch:
    chance = random.random()
    if chance < 0.03:
        return _early(random, login)
    begin = opening(login)
    pieces: list[bytes] = []
    count = random.randint(CHANNELS_MAX // 2, CHANNELS_MAX)
    for channel in range(1, count + 1):
        pieces += [frame(METHOD, channel, encode("channel.open")), *_input(random, channel)]
    if chance < 0.15:
        # Frames out of order, cut short, with other sizes and channels.
        return AmqpBatch(begin + mutated(random, [pieces]), count, True, len(begin))
    pieces += _deadly(random, count)
    return AmqpBatch(begin + b"".join(pieces), count + 1, random.random() < 0.95, len(begin))


def _deadly(random: Random, count: int) -> list[bytes]:
    """Draws the last input of a connection."""
    chance = random.random()
    if chance < 0.1:
        return [random_frame(random)]
    if chance < 0.4:
        name, channel = random.choice([*FATAL, *FATAL_TOO]), random.choice([0, 1, count, 2047, 2048, 65535])
        return [some_method(random, name, channel)]
    return [frame(METHOD, count + 1, encode("channel.open")), *_input(random, count + 1, deadly=True)]


def _early(random: Random, login: Login) -> AmqpBatch:
    """Draws inputs before the connection is open: no user is logged in."""
    steps = [
        PROTOCOL_HEADER,
        *(some_method(random, name, 0) for name in ("connection.start-ok", "connection.tune-ok", "connection.open")),
    ]
    good = opening(login)
    if random.random() < 0.5:
        # The login is valid; the following methods are not.
        tune = good.index(frame(METHOD, 0, encode("connection.tune-ok", channel_max=2047, frame_max=131072)))
        steps[:2] = [good[:tune]]
    inputs = len(steps)
    data = b"".join(steps) if random.random() < 0.5 else mutated(random, [steps])
    return AmqpBatch(data, inputs, waits=False)


def _input(random: Random, channel: int, *, deadly: bool = False) -> list[bytes]:
    """Draws one method, with a preceding one that it depends on."""
    if random.random() < 0.05:
        return _latent(random, channel)
    name = random.choice(HARMLESS)
    before: list[bytes] = []
    if name in ("tx.commit", "tx.rollback") or random.random() < 0.05:
        before = [frame(METHOD, channel, encode("tx.select"))]
    elif name == "basic.publish" and random.random() < 0.3:
        before = [frame(METHOD, channel, encode("confirm.select"))]
    elif random.random() < 0.3:
        before = [_usual(random, channel)]
    out = [*before, some_method(random, name, channel, deadly=deadly)]
    if name == "basic.publish":
        out += some_content(random, channel, deadly=deadly)
    return out


def _latent(random: Random, channel: int) -> list[bytes]:
    """Draws a message that the broker reads again long after the publish: when it dies, or when its delay is over."""
    later = {"exchange": "hostile.later", "type": "x-delayed-message", "arguments": {"x-delayed-type": "headers"}}
    dying = {"x-message-ttl": 1, "x-dead-letter-exchange": "hostile.later"}
    steps = (
        ("exchange.declare", {**later, "durable": True}),
        ("queue.declare", {"queue": "hostile.dying", "durable": True, "arguments": dying}),
        ("exchange.declare", {"exchange": "hostile.in", "type": "fanout", "durable": True}),
        ("queue.bind", {"queue": "hostile.dying", "exchange": "hostile.in"}),
    )
    where = {"exchange": random.choice(("hostile.later", "hostile.in")), "routing_key": random.choice((b"k", *OCTETS))}
    # Headers are its only property.
    content = frame(HEADER, channel, struct.pack(">HHQH", 60, 0, 0, 1 << 13) + delayed_table(random))
    out = [frame(METHOD, channel, encode(name, **given)) for name, given in steps]
    return [*out, frame(METHOD, channel, encode("basic.publish", **where)), content]


def _usual(random: Random, channel: int) -> bytes:
    """Draws a valid declare, so that later inputs find objects."""
    kind = random.choice(("classic", "quorum", "stream"))
    given: dict[str, object]
    if random.random() < 0.3:
        given = {"exchange": "hostile.x0", "type": random.choice(("topic", "headers", "fanout")), "durable": True}
        return frame(METHOD, channel, encode("exchange.declare", **given))
    name = {"classic": "hostile.q0", "quorum": "hostile.q1", "stream": "hostile.s0"}[kind]
    given = {"queue": name, "durable": True, "arguments": {"x-queue-type": kind, "x-max-length-bytes": 1_000_000}}
    if kind == "stream" and random.random() < 0.5:
        return frame(METHOD, channel, encode("basic.qos", prefetch_count=10))
    return frame(METHOD, channel, encode("queue.declare", **given))


def some_method(random: Random, name: str, channel: int, *, deadly: bool = True) -> bytes:
    """Most arguments are valid; one or two are at or beyond their bounds."""
    given: dict[str, object] = {}
    wild = random.choice([0.2, 0.5, 1.0])
    for argument_name, kind in LAYOUTS[name].arguments:
        given[argument_name] = _argument(random, argument_name, kind, wild, deadly=deadly)
    if not deadly and name in NOT_FOR_STREAMS:
        given["queue"] = random.choice(("hostile.q0", "hostile.q1", *TEXTS))
    payload = encode(name, **given)
    chance = random.random() if deadly else 1.0
    if chance < 0.1:
        payload = payload[: random.randrange(len(payload))]
    elif chance < 0.2:
        payload += random.randbytes(random.choice([1, 3, 200]))
    return frame(METHOD, channel, payload)


def _argument(random: Random, name: str, kind: str, wild: float, *, deadly: bool) -> object:
    if not deadly and name in DEADLY_UNLESS:
        return DEADLY_UNLESS[name]
    is_wild = random.random() < wild
    match kind:
        case "t":
            # No-wait hides whether the input was refused; both variants are needed.
            return random.random() < (0.5 if is_wild else 0.1)
        case "F":
            return encoded_table(random, deadly=deadly) if is_wild else {}
        case "S":
            return some_text(random, deadly=deadly) if is_wild else b""
        case "s" if name == "type":
            types = ("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-delayed-message", "x-random")
            return some_text(random, deadly=deadly) if is_wild else random.choice(types)
        case "s":
            return (
                some_text(random, deadly=deadly)
                if is_wild
                else random.choice(("hostile.q0", "hostile.x0", "hostile.s0"))
            )
        case _:
            return some_number(random, 0, _SIZES[kind]) if is_wild else random.choice([0, 1])


def some_content(random: Random, channel: int, *, deadly: bool = True) -> list[bytes]:
    body = random.choice([b"", b"m", b"x" * 300, b"\xce" * 5_000, b"\0" * 131_000])
    flags, packed = 0, b""
    for place, (name, kind) in enumerate(PROPERTIES):
        if random.random() < 0.15:
            flags |= 1 << (15 - place)
            packed += argument(kind, _argument(random, name, kind, 0.8, deadly=deadly))
    if deadly and random.random() < 0.2:
        flags |= random.choice([1, 2, 3])
    size = len(body) if not deadly or random.random() < 0.7 else some_number(random, 0, 2**64)
    class_id = 60 if not deadly or random.random() < 0.9 else random.choice([0, 10, 65535])
    out = [frame(HEADER, channel, struct.pack(">HHQH", class_id, 0, size, flags) + packed)]
    return [*out, frame(BODY, channel, body)] if body else out


def handled(written: bytes) -> tuple[int, bytes | None]:
    """Returns how many channels the broker has opened, and the payload of the connection.close that it sent."""
    place = opened = 0
    closed = None
    while len(written) - place >= 7:
        kind, channel, size = struct.unpack_from(">BHI", written, place)
        payload = written[place + 7 : place + 7 + size]
        if kind == METHOD and payload[:4] == OPEN_OK:
            opened += 1
        elif kind == METHOD and channel == 0 and payload[:4] == struct.pack(">HH", 10, 50):
            closed = payload
        place += size + 8
    return opened, closed
