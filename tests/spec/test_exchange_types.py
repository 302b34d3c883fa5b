"""Routing by each type of exchange. The kernel routes in batches, so many messages are routed at once, too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.client import Channel
from tests.support.fields import Typed


def routed(channel: Channel, exchange: str, queue: str, keys: list[str]) -> list[str]:
    """Returns the keys, in order, that reach the queue when a message is published with each."""
    with channel.connection.in_segments("whole"):
        for key in keys:
            channel.publish(key, key, exchange)
    return [body.decode() for body in channel.drain(queue)]


def test_the_default_exchange_knows_every_queue_by_its_name(channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name)
    assert routed(channel, "", queue, [name, name + "x", "", name]) == [name, name]


def test_direct(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    queue = channel.declare_queue()
    for key in ("a", "b", ""):
        channel.bind(queue, name, key)
    assert routed(channel, name, queue, ["a", "A", "b", "c", "", "a.b", "a"]) == ["a", "b", "", "a"]


def test_direct_to_several_queues(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    queues = [channel.declare_queue() for _ in range(5)]
    for queue in queues:
        channel.bind(queue, name, "k")
        channel.bind(queue, name, "k")
    channel.publish("m", "k", name)
    assert [channel.drain(queue) for queue in queues] == [[b"m"]] * 5


def test_fanout_ignores_the_key(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "fanout")
    one, two = channel.declare_queue(), channel.declare_queue()
    channel.bind(one, name, "whatever")
    channel.bind(two, name)
    channel.publish("m", "x", name)
    assert [channel.drain(one), channel.drain(two)] == [[b"m"], [b"m"]]


WORDS = ["a", "b", "quick", "", "lazy"]
TOPICS = ["", "a", "b", "a.b", "a.b.c", "a..c", ".", "..", "a.", ".a", "quick.a.b", "a.b.a.b", "lazy", "a.lazy.b.c.d"]
PATTERNS = [
    "a",
    "a.b",
    "*",
    "*.*",
    "#",
    "a.*",
    "*.b",
    "a.#",
    "#.b",
    "a.*.c",
    "a.#.c",
    "#.a.#",
    "*.#",
    "#.*",
    "#.#",
    "*.#.*",
    "a.#.*.c",
    "#.lazy.#",
    "",
    ".",
    "*.",
    "a.*b",
    "#a",
]


def topic_matches(pattern: str, key: str) -> bool:
    """A second definition: a regular expression over the key's words, each closed by a dot."""
    out = ""
    for word in pattern.split("."):
        if word == "#":
            out += r"(?:[^.]*\.)*"
        elif word == "*":
            out += r"[^.]*\."
        else:
            out += re.escape(word) + r"\."
    words = key + "." if key else ""
    return re.fullmatch(out if pattern else "", words) is not None


@pytest.mark.parametrize("pattern", PATTERNS)
def test_topic(channel: Channel, name: str, pattern: str) -> None:
    channel.declare_exchange(name, "topic")
    queue = channel.declare_queue()
    channel.bind(queue, name, pattern)
    assert routed(channel, name, queue, TOPICS) == [key for key in TOPICS if topic_matches(pattern, key)]


def test_topic_with_all_patterns_at_once_delivers_once(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "topic")
    queue = channel.declare_queue()
    for pattern in PATTERNS:
        channel.bind(queue, name, pattern)
    assert routed(channel, name, queue, TOPICS) == TOPICS
    channel.rpc("queue.unbind", queue=queue, exchange=name, routing_key="#")
    left = [pattern for pattern in PATTERNS if pattern != "#"]
    expected = [key for key in TOPICS if any(topic_matches(pattern, key) for pattern in left)]
    assert routed(channel, name, queue, TOPICS) == expected


def test_topic_with_many_words(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "topic")
    queue = channel.declare_queue()
    key = ".".join("abcdefghijklmnopqrstuvwxyz0123456789")
    for pattern in (key, key.replace("c", "*").replace("8", "*"), "#.z.#", "a.#.9", "*." * 35 + "*"):
        channel.bind(queue, name, pattern)
        assert routed(channel, name, queue, [key]) == [key], pattern
        channel.rpc("queue.unbind", queue=queue, exchange=name, routing_key=pattern)
    for pattern in ("*." * 34 + "*", "#.y.z.y.#", key + ".#.more"):
        channel.bind(queue, name, pattern)
    assert routed(channel, name, queue, [key]) == []


@pytest.mark.ours_only
def test_topic_with_hashes_that_could_match_in_many_ways(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "topic")
    queue = channel.declare_queue()
    # A matcher that tries one way after the other would take hours here, and any client could cause that.
    channel.bind(queue, name, ".".join(["#", "a"] * 12))
    key = ".".join("a" * 60)
    assert routed(channel, name, queue, [key, key + ".b"]) == [key]


HEADERS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"x-match": "all", "a": 1, "b": "two"}, {"a": 1, "b": "two"}, True),
    ({"x-match": "all", "a": 1, "b": "two"}, {"a": 1, "b": "two", "c": 3}, True),
    ({"x-match": "all", "a": 1, "b": "two"}, {"a": 1}, False),
    ({"x-match": "all", "a": 1, "b": "two"}, {"a": 1, "b": "three"}, False),
    ({"a": 1, "b": "two"}, {"a": 1}, False),
    ({"a": 1, "b": "two"}, {"a": 1, "b": "two"}, True),
    ({"x-match": "any", "a": 1, "b": "two"}, {"a": 1}, True),
    ({"x-match": "any", "a": 1, "b": "two"}, {"b": "two", "a": 2}, True),
    ({"x-match": "any", "a": 1, "b": "two"}, {"c": 3}, False),
    ({"x-match": "any", "a": 1, "b": "two"}, {}, False),
    # A binding without a value requires only that the header exists.
    ({"x-match": "all", "a": None}, {"a": "anything"}, True),
    ({"x-match": "all", "a": None}, {"b": "anything"}, False),
    # The type counts, except among the integers.
    ({"x-match": "all", "a": Typed("I", 1)}, {"a": Typed("l", 1)}, True),
    ({"x-match": "all", "a": 1}, {"a": "1"}, False),
    ({"x-match": "all", "a": True}, {"a": True}, True),
    ({"x-match": "all", "a": True}, {"a": 1}, False),
    ({"x-match": "all", "a": "A"}, {"a": "a"}, False),
    # Headers whose names begin with x- are ignored unless the binding uses -with-x.
    ({"x-match": "all", "x-a": 1}, {}, True),
    ({"x-match": "all", "x-a": 1, "b": 1}, {"b": 1}, True),
    ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
    ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 2}, False),
    ({"x-match": "all-with-x", "x-a": 1, "b": 2}, {"x-a": 1}, False),
    ({"x-match": "any-with-x", "x-a": 1, "b": 2}, {"x-a": 1}, True),
    ({"x-match": "any-with-x", "x-a": 1, "b": 2}, {"b": 1}, False),
    ({}, {"a": 1}, True),
    ({}, {}, True),
    ({"x-match": "all"}, {"a": 1}, True),
    ({"x-match": "any"}, {"a": 1}, False),
]


@pytest.mark.parametrize(("binding", "headers", "matches"), HEADERS)
def test_headers(
    channel: Channel, name: str, binding: Mapping[str, Any], headers: Mapping[str, Any], matches: bool
) -> None:
    channel.declare_exchange(name, "headers")
    queue = channel.declare_queue()
    channel.rpc("queue.bind", queue=queue, exchange=name, arguments=binding)
    channel.publish("with", "ignored", name, headers=headers)
    assert channel.drain(queue) == ([b"with"] if matches else [])


def test_headers_of_a_message_without_any(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "headers")
    queue = channel.declare_queue()
    channel.rpc("queue.bind", queue=queue, exchange=name, arguments={"x-match": "all", "a": 1})
    channel.publish("m", "", name, mandatory=True)
    assert channel.expect("basic.return").reply_code == 312


@pytest.mark.parametrize(
    ("match", "text"),
    [
        ("some", "Invalid x-match field value …"),
        (5, "Invalid x-match field type signedint (value 5); expected longstr"),
    ],
)
def test_headers_with_an_x_match_that_is_none(channel: Channel, name: str, match: object, text: str) -> None:
    queue = channel.declare_queue(name)
    arguments = {"x-match": match}
    expected = "PRECONDITION_FAILED - " + text
    channel.refused(406, expected, "queue.bind", queue=queue, exchange="amq.headers", arguments=arguments)


def test_amq_match_is_a_headers_exchange(channel: Channel, name: str) -> None:
    queue = channel.declare_queue()
    channel.rpc("queue.bind", queue=queue, exchange="amq.match", arguments={"x-match": "any", name: True})
    channel.publish("m", "", "amq.match", headers={name: True})
    assert channel.drain(queue) == [b"m"]
