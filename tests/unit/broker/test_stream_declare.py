"""The valid and invalid arguments of a stream, with RabbitMQ's reply texts."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.log.commands import PutPolicy
from pandomq.fieldtable import Int32
from tests.unit.broker.conversation import World
from tests.unit.broker.stream_scene import STREAM, declared, stream_of

RESOURCE = "queue 's' in vhost '/'"


@pytest.mark.parametrize(
    ("traits", "text"),
    [
        ({}, f"invalid property 'non-durable' for {RESOURCE}"),
        ({"durable": True, "auto_delete": True}, f"invalid property 'auto-delete' for {RESOURCE}"),
        ({"durable": True, "exclusive": True}, f"invalid property 'exclusive-owner' for {RESOURCE}"),
    ],
)
def test_a_stream_is_durable_and_everybodys(traits: dict[str, Any], text: str) -> None:
    close = World().peer().refused(methods.QueueDeclare("s", arguments=STREAM, **traits))
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("x-max-age", "7X", f"invalid arg 'x-max-age' for {RESOURCE}: invalid_max_age"),
        ("x-max-age", "0s", f"invalid arg 'x-max-age' for {RESOURCE}: invalid_max_age"),
        ("x-max-age", Int32(7), f"invalid arg 'x-max-age' for {RESOURCE}: {{unacceptable_type,signedint}}"),
        ("x-max-length-bytes", Int32(-1), f"invalid arg 'x-max-length-bytes' for {RESOURCE}: {{value_negative,-1}}"),
        ("x-stream-max-segment-size-bytes", 3_000_000_001, "Exceeded max value for x-stream-max-segment-size-bytes"),
        ("x-stream-filter-size-bytes", Int32(15), "Invalid value for  x-stream-filter-size-bytes"),
        *(
            (name, value, f"invalid arg '{name}' for {RESOURCE} of queue type rabbit_stream_queue")
            for name, value in (
                ("x-max-length", Int32(1)),
                ("x-message-ttl", Int32(1)),
                ("x-expires", Int32(1)),
                ("x-dead-letter-exchange", "x"),
                ("x-max-priority", Int32(1)),
                ("x-single-active-consumer", True),
                ("x-overflow", "drop-head"),
                ("x-delivery-limit", Int32(1)),
                ("x-last-value-key", "k"),
            )
        ),
    ],
)
def test_arguments_that_do_not_fit_a_stream_are_refused(name: str, value: Any, text: str) -> None:
    close = World().peer().refused(methods.QueueDeclare("s", durable=True, arguments={**STREAM, name: value}))
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_other_queues_have_none_of_it(kind: str) -> None:
    arguments = {"x-queue-type": kind, "x-max-age": "1h"}
    close = World().peer().refused(methods.QueueDeclare("q", durable=True, arguments=arguments))
    assert f"invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_{kind}_queue" in close.reply_text


def test_the_broker_names_no_stream() -> None:
    close = World().peer().refused(methods.QueueDeclare("", durable=True, arguments=STREAM))
    assert "Cannot declare a server-named queue for type rabbit_stream_queue" in close.reply_text


def test_a_second_declare_asks_for_the_same() -> None:
    peer = declared(World(), max_age="1h")
    peer.declare("s", durable=True, arguments={**STREAM, "x-max-age": "1h"})
    close = peer.refused(methods.QueueDeclare("s", durable=True, arguments={**STREAM, "x-max-age": "2h"}))
    assert "inequivalent arg 'x-max-age'" in close.reply_text
    close = peer.refused(methods.QueueDeclare("s", durable=True))
    assert "inequivalent arg 'x-" in close.reply_text


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (methods.BasicGet("s"), f"basic.get not supported by stream queues {RESOURCE}"),
        (methods.QueuePurge("s"), f"queue.purge not supported by stream queues {RESOURCE}"),
    ],
)
def test_methods_that_do_not_fit_a_stream_end_the_connection(method: methods.Method, text: str) -> None:
    peer = declared(World())
    peer.send(method)
    assert (peer.fault().reply_code, peer.fault().reply_text) == (540, f"NOT_IMPLEMENTED - {text}")


def test_policies_bound_the_retained_messages() -> None:
    world = World()
    declared(world, max_age="1h", max_length_bytes=5000)
    definition = b'{"max-age": "30m", "max-length-bytes": 9000, "stream-max-segment-size-bytes": 700}'
    assert world.administer(PutPolicy("/", "p", ".*", "streams", 0, definition)) is None
    settings = stream_of(world).queue.owner.settings
    assert (settings.max_age_ms, settings.bytes_max, settings.segment_bytes) == (1_800_000, 5000, 700)


def test_policies_that_mean_other_queues_are_not_for_streams() -> None:
    world = World()
    declared(world)
    for name, applies_to, definition in (
        ("a", "queues", b'{"message-ttl": 5}'),
        ("b", "classic_queues", b'{"max-length-bytes": 5}'),
    ):
        assert world.administer(PutPolicy("/", name, ".*", applies_to, 0, definition)) is None
    assert stream_of(world).queue.owner.policy is None


def test_a_policy_with_no_age_is_refused() -> None:
    fault = World().administer(PutPolicy("/", "p", ".*", "streams", 0, b'{"max-age": "soon"}'))
    assert fault is not None
    assert "is not a valid max age" in fault.reply_text


def test_delete_of_a_stream_returns_the_number_of_its_messages() -> None:
    world = World()
    peer = declared(world)
    for _ in range(3):
        peer.publish("", "s")
    assert peer.counts("s") == (3, 0)
    assert peer.call(methods.QueueDelete("s"), expect=methods.QueueDeleteOk).message_count == 3
    assert world.broker.streams.find("/", "s") is None
