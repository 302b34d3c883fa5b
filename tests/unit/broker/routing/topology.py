"""Exchanges, queues and bindings for the tests of routing, and what they mean by the shortest definition there is."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pandomq import kernel
from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.exchanges.catalogue import make_exchange
from pandomq.broker.exchanges.exchange import Exchange


class SilentHooks:
    """An engine that only holds queues asks nothing."""

    def publish(self, channel: kernel.Channel, message: kernel.Message, flags: int) -> None: ...
    def settle(self, channel: kernel.Channel, method_id: int, tag: int, multiple: bool, requeue: bool) -> None: ...
    def unknown_tag(self, channel: kernel.Channel, method_id: int, tag: int) -> None: ...
    def unknown_channel(self, session: kernel.Session, number: int, class_id: int, method_id: int) -> None: ...
    def fan_out(self, owner: Any, message: kernel.Message) -> None: ...
    def redelivered_copy(self, message: kernel.Message, delivery_count: int) -> kernel.Message:
        return message


class Mailbox:
    """A queue as the router sees it."""

    def __init__(self, name: str, engine: kernel.Engine) -> None:
        self.name = name
        self.kernel = kernel.Queue(engine, self, 1, False)

    def __repr__(self) -> str:
        return self.name


def mailboxes(names: Iterable[str]) -> dict[str, Mailbox]:
    engine = kernel.Engine(SilentHooks())
    return {name: Mailbox(name, engine) for name in names}


def exchange(name: str, type_name: str, **traits: Any) -> Exchange:
    arguments = traits.pop("arguments", {})
    return make_exchange(name, type_name, arguments=arguments, random=random.Random(1), **traits)


def binding(
    source: Exchange, destination: Mailbox | Exchange, key: str = "", arguments: Mapping[str, Any] | None = None
) -> Binding:
    make = Binding.to_exchange if isinstance(destination, Exchange) else Binding.to_queue
    return make(source.name, destination, key, arguments or {})


def topic_matches(pattern: str, key: str) -> bool:
    """By backtracking, word for word."""

    def rest_matches(patterns: Sequence[str], words: Sequence[str]) -> bool:
        if not patterns:
            return not words
        if patterns[0] == "#":
            return any(rest_matches(patterns[1:], words[skipped:]) for skipped in range(len(words) + 1))
        return bool(words) and patterns[0] in ("*", words[0]) and rest_matches(patterns[1:], words[1:])

    return rest_matches(pattern.split(".") if pattern else [], key.split(".") if key else [])


def headers_match(arguments: Mapping[str, Any], headers: Mapping[str, Any]) -> bool:
    mode = arguments.get("x-match", "all")
    wanted = {
        name: value
        for name, value in arguments.items()
        if name != "x-match" and ("with-x" in mode or not re.match("x-", name))
    }
    found = [name in headers and (value is None or _same(value, headers[name])) for name, value in wanted.items()]
    return all(found) if mode.startswith("all") else any(found)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bytes) or isinstance(right, bytes):
        left, right = (value.encode() if isinstance(value, str) else value for value in (left, right))
    return _kind(left) is _kind(right) and left == right


def _kind(value: Any) -> type:
    return next(kind for kind in (bool, int, float, str, bytes, list, dict, type(None)) if isinstance(value, kind))


def matches(source: Exchange, bound: Binding, keys: Sequence[str], headers: Mapping[str, Any]) -> bool:
    """Whether a message takes this binding, for the types that do not choose."""
    match source.type_name:
        case "direct":
            return bound.routing_key in keys
        case "fanout":
            return True
        case "topic":
            return any(topic_matches(bound.routing_key, key) for key in keys)
        case "headers":
            return headers_match(bound.arguments, headers)
        case other:
            raise AssertionError(other)


def reached(
    exchanges: Mapping[str, Exchange], start: Exchange, keys: Sequence[str], headers: Mapping[str, Any]
) -> set[str]:
    """The names of the queues: follow everything until there is nothing new."""
    visited = {start.name}
    queues: set[str] = set()
    while True:
        ahead: set[str] = set()
        for name in visited:
            source = exchanges[name]
            taken = [bound for bound in source.bindings() if matches(source, bound, keys, headers)]
            queues.update(bound.destination.name for bound in taken if bound.kind.value == "queue")
            ahead.update(bound.destination.name for bound in taken if bound.kind.value == "exchange")
            if not taken and source.alternate in exchanges:
                ahead.add(str(source.alternate))
        if ahead <= visited:
            return queues
        visited |= ahead
