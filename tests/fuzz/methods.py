"""Random methods with random arguments, drawn from few names so that they affect each other."""

from __future__ import annotations

import functools
from collections.abc import Mapping, MutableSequence
from random import Random
from typing import Any

from tests.support.fields import Typed, content_header
from tests.support.frames import BODY, HEADER, METHOD, frame
from tests.support.methods import LAYOUTS, encode

Tags = Mapping[int, MutableSequence[int]]
"""Unacked delivery tags, by channel."""


def mostly(good: list[Any], bad: list[Any]) -> list[Any]:
    """Bad ones are rare: an error ends a channel, and hides errors behind it."""
    return good * max(1, 12 * len(bad) // len(good)) + bad


QUEUES = mostly(["q0", "q1", "q2", "q3"], ["", "amq.rabbitmq.reply-to", "amq.gen-x"])
EXCHANGES = mostly(["x0", "x1", "x2", "x3", "amq.direct", "amq.topic", "amq.fanout", "amq.headers"], ["missing", ""])
TYPES = ["direct", "fanout", "topic", "headers", "x-consistent-hash", "x-random", "x-delayed-message", "nonsense", ""]
KEYS = ["q0", "q1", "q2", "q3", "a.b", "a.*", "#", "*.#.b", "1", "", "a.b.c.d.e.f", "#.#.#", "k", "k" * 255]
TAGS = mostly([""], ["t0", "t1", "t2"])
# Bits whose other value ends the connection are rarely wrong, so that further methods follow.
BIT_CHANCES = {"immediate": 0.005, "active": 0.99, "exclusive": 0.15, "passive": 0.1, "internal": 0.1}
CHANNELS = [1] * 60 + [2] * 36 + [0, 3, 2048, 65535]

# The methods that a client may send, weighted by the amount of code behind them.
CLIENT_METHODS = (
    ["basic.publish"] * 12
    + ["queue.declare", "basic.consume", "basic.get", "basic.ack", "basic.nack", "basic.reject"] * 5
    + ["exchange.declare", "queue.bind", "exchange.bind", "basic.cancel", "basic.qos", "queue.delete"] * 3
    + ["queue.unbind", "exchange.unbind", "exchange.delete", "queue.purge"] * 2
    + ["tx.select", "tx.select", "tx.commit", "tx.rollback", "confirm.select", "basic.recover", "basic.recover-async"]
    + ["channel.flow", "access.request"]
)

ARGUMENTS: dict[str, list[Any]] = {
    "x-message-ttl": [0, 1, 50, 100_000, -1, "x", 2**62],
    "x-expires": [1, 100, 100_000, 0, None],
    "x-max-length": [0, 1, 5, -1, Typed("l", 2**63 - 1)],
    "x-max-length-bytes": [0, 10, 10_000],
    "x-overflow": ["drop-head", "reject-publish", "reject-publish-dlx", "what"],
    "x-dead-letter-exchange": ["", "x0", "x1", "amq.fanout", 7],
    "x-dead-letter-routing-key": ["q0", "q1", "q2", "k" * 300],
    "x-max-priority": [0, 1, 5, 255, 256, Typed("b", -1)],
    "x-single-active-consumer": [True, False, "yes"],
    "x-queue-type": ["classic", "quorum", "stream", ""],
    "x-delivery-limit": [0, 1, 3, -1],
    "x-last-value-key": ["k", "n", ""],
    "x-consumer-timeout": [1, 100, 100_000],
    "x-priority": [0, 5, -5, "high"],
    "alternate-exchange": ["x0", "x1", "missing", 5],
    "x-delayed-type": ["direct", "topic", "x-delayed-message", "nonsense"],
    "x-match": ["all", "any", "all-with-x", "any-with-x", "none", 1],
    "hash-header": ["k"],
    "hash-property": ["message_id", "timestamp", "nonsense"],
    "k": [1, "v", None],
    "n": [1, 2, [1, [2, [3]]]],
}
TO_X0 = {"x-dead-letter-exchange": "x0"}
HEADERS: dict[str, list[Any]] = {
    "CC": mostly([["q0", "q1"], ["a.b"], []], ["q0", [1]]),
    "BCC": mostly([["q2"], ["q3", "q0"]], [[None], 5]),
    "k": [1, 2, "v", None, True, 1.5],
    "n": [1, b"\x00\xff", {"deep": [{}]}],
    "x-delay": mostly([0, 1, 50, 100_000], [-1, "soon"]),
    "x-death": mostly([[], [{"queue": "q0", "reason": "expired", "count": 1}]], ["none", [5]]),
    "x-delivery-count": [1, "many"],
}
PROPERTIES: dict[str, list[Any]] = {
    "content_type": ["a/b", ""],
    "delivery_mode": mostly([1, 2], [0, 255]),
    "priority": [0, 1, 5, 255],
    "correlation_id": ["c"],
    "reply_to": mostly(["q0"], ["amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.x"]),
    "expiration": mostly(["0", "1", "100"], ["-1", "abc", "", "99999999999999999999"]),
    "message_id": ["m1", "m2"],
    "timestamp": [0, 2**64 - 1],
    "user_id": mostly(["guest"], ["other"]),
}


def random_table(random: Random, pool: dict[str, list[Any]], most: int) -> dict[str, Any]:
    names = random.sample(list(pool), random.randint(0, most))
    return {name: random.choice(pool[name]) for name in names}


# The usual declare of each queue, so that declares agree and messages reach limits, dead letters and consumers.
USUAL: dict[str, dict[str, Any]] = {
    "q0": {"durable": True, "arguments": {"x-max-priority": 5, "x-max-length": 10}},
    "q1": {"arguments": {"x-message-ttl": 50, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q0"}},
    "q2": {"auto_delete": True, "arguments": {"x-max-length": 3, "x-overflow": "reject-publish-dlx", **TO_X0}},
    "q3": {"durable": True, "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 2, **TO_X0}},
    "x0": {"type": "fanout"},
    "x1": {"type": "topic", "durable": True, "arguments": {"alternate-exchange": "x0"}},
    "x2": {"type": "headers", "auto_delete": True},
    "x3": {"type": "x-delayed-message", "arguments": {"x-delayed-type": "direct"}},
}


def usual_declare(random: Random) -> tuple[str, dict[str, Any]]:
    name = random.choice(list(USUAL))
    kind = "queue" if name.startswith("q") else "exchange"
    return f"{kind}.declare", {kind: name, "no_wait": random.random() < 0.3, **USUAL[name]}


@functools.cache
def furniture() -> bytes:
    """Declares and binds all usual objects, on channel 1, without waiting for answers."""
    steps: list[tuple[str, dict[str, Any]]] = []
    for name, options in USUAL.items():
        kind = "queue" if name.startswith("q") else "exchange"
        steps.append((f"{kind}.declare", {kind: name, **options}))
    for queue, exchange, key in (("q0", "x0", ""), ("q1", "x1", "a.*"), ("q2", "x3", "k"), ("q3", "x2", "")):
        steps.append(("queue.bind", {"queue": queue, "exchange": exchange, "routing_key": key}))
    return b"".join(frame(METHOD, 1, encode(name, no_wait=True, **options)) for name, options in steps)


def random_argument(random: Random, name: str, kind: str) -> Any:
    pools = {"queue": QUEUES, "type": TYPES, "routing_key": KEYS, "consumer_tag": TAGS}
    if name in pools:
        return random.choice(pools[name])
    if name in ("exchange", "source", "destination"):
        return random.choice(EXCHANGES)
    if name == "delivery_tag":
        return random.choice([0, 1, 2, 3, 10, 2**32, 2**64 - 1])
    if name == "prefetch_size":
        return random.choice([0] * 100 + [1])
    if name == "requeue":
        return random.random() < 0.95
    match kind:
        case "t":
            return random.random() < BIT_CHANCES.get(name, 0.3)
        case "F":
            return random_table(random, ARGUMENTS, random.choice([0, 0, 0, 0, 0, 1, 2, 4]))
        case "s" | "S":
            return random.choice([b"", b"x", b"text"])
        case _:
            return random.choice([0, 1, 2, 5, 255])


def random_method(random: Random, tags: Tags) -> bytes:
    """Draws the frames of one method: with its content, if it has one. The tags that it acks are mostly removed."""
    anything = random.random() < 0.01
    name = random.choice(list(LAYOUTS)) if anything else random.choice(CLIENT_METHODS)
    channel = random.choice(CHANNELS)
    arguments = {argument: random_argument(random, argument, kind) for argument, kind in LAYOUTS[name].arguments}
    if name == "basic.publish" and random.random() < 0.5:
        arguments["exchange"] = ""
    if name in ("queue.declare", "exchange.declare") and random.random() < 0.85:
        name, arguments = usual_declare(random)
    if "delivery_tag" in arguments and random.random() < 0.9:
        if not tags.get(channel):
            return b""
        place = random.randrange(len(tags[channel]))
        arguments["delivery_tag"] = tags[channel][place]
        if random.random() < 0.9:
            del tags[channel][place]
    out = frame(METHOD, channel, encode(name, **arguments))
    return out + random_content(random, channel) if name == "basic.publish" else out


def random_content(random: Random, channel: int) -> bytes:
    properties = random_table(random, PROPERTIES, 3)
    if random.random() < 0.5:
        properties["headers"] = random_table(random, HEADERS, 3)
    body = random.choice([b"", b"m", b"body", b"x" * 300, b"\xce" * 5000])
    out = frame(HEADER, channel, content_header(len(body), properties))
    cut = random.randint(1, len(body)) if body and random.random() < 0.3 else len(body)
    for piece in (body[:cut], body[cut:]):
        out += frame(BODY, channel, piece) if piece else b""
    return out
