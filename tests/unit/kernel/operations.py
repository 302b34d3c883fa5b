"""The operations on a world, each with three small numbers that choose its details; they drive two worlds in lockstep.

An operation returns the values that its caller would see. An operation that finds no object does nothing. They register
themselves when their modules are imported; lockstep.py does so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.kernel.frames import headers, properties
from tests.unit.kernel.world import World

Operation = Callable[[World, int, int, int], Any]
OPERATIONS: dict[str, Operation] = {}
WEIGHTS: dict[str, int] = {}

KEYS = ["q0", "q1", "q2", "fan", "q0", "fan", "nowhere"]
PROPERTIES = [
    properties(),
    properties(delivery_mode=2),
    properties(delivery_mode=2, priority=3),
    properties(priority=200),
    properties(priority=1),
    properties(expiration=b"0"),
    properties(expiration=b"5", delivery_mode=2),
    properties(expiration=b"never"),
    properties(table=headers(k=b"1")),
    properties(table=headers(k=b"2"), delivery_mode=2),
    properties(table=headers(k=b"1"), delivery_mode=2, priority=2),
    properties(table=headers(CC=b"x")),
    properties(table=headers(x_delay=b"x")),
    properties(table=headers(x_producer=b"p", x_sequence=b"1")),
    properties(table=headers(x_producer=b"p"), delivery_mode=2),
    properties(table=headers(x_producer=b"p", x_stream_offset=b"?")),
    properties(table=headers(k=b"3", x_stream_filter_value=b"1"), delivery_mode=2),
    properties(table=headers(x_stream_filter_value=b"2")),
    properties(user_id=b"guest"),
    properties(reply_to=b"amq.rabbitmq.reply-to"),
    properties()[:1],
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"dead_letters": True},
    {"ttl_ms": 7, "dead_letters": True},
    {"ttl_ms": 0},
    {"length_max": 2},
    {"length_max": 0, "dead_letters": True},
    {"length_max": 2, "dead_letters": True, "priority_max": 5},
    {"bytes_max": 40, "dead_letters": True},
    {"length_max": 2, "overflow": 1},
    {"bytes_max": 30, "overflow": 2, "dead_letters": True},
    {"priority_max": 5},
    {"priority_max": 255, "ttl_ms": 9},
    {"delivery_limit": 1, "dead_letters": True, "counts_deliveries": True},
    {"delivery_limit": 0},
    {"counts_deliveries": True},
    {"last_value_key": b"k"},
    {"last_value_key": b"k", "priority_max": 3, "length_max": 3},
    {"single_active": True},
    {"synced": True},
    {"local": True},
    {"local": True, "length_max": 2},
    {"local": True, "length_max": 2, "overflow": 1},
    {"outlet": True},
]


def operation(weight: int) -> Callable[[Operation], Operation]:
    def register(function: Operation) -> Operation:
        OPERATIONS[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        return function

    return register


def one(items: list[Any], number: int) -> Any:
    """None if there are none."""
    return items[number % len(items)] if items else None


def open_channel(world: World, number: int) -> Any:
    """One that its client would use."""
    present = (channel for channel in world.channels if channel.session.channel(channel.number) is channel)
    return one([channel for channel in present if channel.open], number)


def live_queue(world: World, number: int) -> Any:
    return one([queue for queue in world.queues if not queue.deleted], number)
