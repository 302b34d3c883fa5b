"""Arguments of queues: what RabbitMQ refuses is refused in its words, and what is asked for reaches the queue."""

from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.queues.queue_arguments import REPLICATIONS
from pandomq.broker.queues.queue_settings import PLAIN, settings_of
from pandomq.fieldtable import Float32, Int16, Int32, UInt8
from tests.unit.broker.conversation import World

INVALID = "PRECONDITION_FAILED - invalid arg '{}' for queue 'q' in vhost '/': {}"


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("x-message-ttl", "a", '"expected integer, got longstr"'),
        ("x-message-ttl", Float32(1.5), '"expected integer, got float"'),
        ("x-message-ttl", Int32(-1), "{value_negative,-1}"),
        ("x-message-ttl", 2**60, f"{{value_too_large,{2**60}}}"),
        ("x-expires", Int32(0), "{value_zero,0}"),
        ("x-expires", Int16(-5), "{value_negative,-5}"),
        ("x-max-priority", Int32(256), "{max_value_exceeded,256}"),
        ("x-max-priority", Int32(-1), "{value_negative,-1}"),
        ("x-max-length", Int32(-1), "{value_negative,-1}"),
        ("x-max-length", True, '"expected integer, got bool"'),
        ("x-max-length-bytes", "1", '"expected integer, got longstr"'),
        ("x-overflow", "z", "invalid_overflow"),
        ("x-overflow", Int32(1), "{unacceptable_type,signedint}"),
        ("x-queue-type", "zz", "\"unsupported queue type 'zz'\""),
        ("x-queue-type", Int32(1), "{unacceptable_type,signedint}"),
        ("x-dead-letter-routing-key", "a", "routing_key_but_no_dlx_defined"),
        ("x-single-active-consumer", UInt8(1), "{unacceptable_type,unsignedbyte}"),
        ("x-queue-mode", "foo", "\"unsupported queue mode 'foo'\""),
        ("x-queue-version", Int32(3), "\"unsupported queue version '3'\""),
        ("x-delivery-limit", "a", '"expected integer, got longstr"'),
        ("x-replicate", "twice", "invalid_replicate"),
        ("qpid.replicate", "twice", "invalid_replicate"),
        ("x-last-value-key", "", "invalid_last_value_key"),
        ("x-last-value-key", Int32(1), "{unacceptable_type,signedint}"),
    ],
)
def test_malformed_arguments_are_refused(name: str, value: Any, wrong: str) -> None:
    close = World().peer().refused(methods.QueueDeclare("q", arguments={name: value}))
    assert (close.reply_code, close.reply_text) == (406, INVALID.format(name, wrong))


def test_a_dead_letter_exchange_that_is_no_string_is_refused() -> None:
    close = World().peer().refused(methods.QueueDeclare("q", arguments={"x-dead-letter-exchange": Int32(1)}))
    assert close.reply_text == (
        "PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'"
    )


@pytest.mark.parametrize(
    ("traits", "name"),
    [
        ({}, "non-durable"),
        ({"durable": True, "exclusive": True}, "exclusive-owner"),
        ({"durable": True, "auto_delete": True}, "auto-delete"),
    ],
)
def test_quorum_queues_are_durable_and_shared(traits: dict[str, bool], name: str) -> None:
    close = World().peer().refused(methods.QueueDeclare("q", **traits, arguments={"x-queue-type": "quorum"}))
    assert close.reply_text == f"PRECONDITION_FAILED - invalid property '{name}' for queue 'q' in vhost '/'"


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("quorum", "x-max-priority", Int32(3)),
        ("quorum", "x-queue-mode", "lazy"),
        ("classic", "x-max-age", "1h"),
        ("classic", "x-retain-until-archived", "archive"),
        ("quorum", "x-max-unarchived-bytes", 5),
        ("classic", "x-dead-letter-strategy", "at-most-once"),
    ],
)
def test_some_arguments_are_for_some_types(kind: str, name: str, value: Any) -> None:
    arguments = {"x-queue-type": kind, name: value}
    close = World().peer().refused(methods.QueueDeclare("q", durable=True, arguments=arguments))
    assert close.reply_text == (
        f"PRECONDITION_FAILED - invalid arg '{name}' for queue 'q' in vhost '/' of queue type rabbit_{kind}_queue"
    )


def test_a_quorum_queue_needs_a_name() -> None:
    close = World().peer().refused(methods.QueueDeclare("", durable=True, arguments={"x-queue-type": "quorum"}))
    assert close.reply_text == (
        "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_quorum_queue"
    )


def test_unknown_arguments_are_accepted_and_kept() -> None:
    world = World()
    world.peer().declare("q", arguments={"x-mine": [1, {"a": None}], "other": "b"})
    assert world.broker.state.vhosts["/"].queues["q"].arguments == {"x-mine": [1, {"a": None}], "other": "b"}


@pytest.mark.parametrize("value", REPLICATIONS)
def test_replication_is_kept(value: str) -> None:
    assert settings_of({"x-replicate": value}).replicate == value
    assert settings_of({"qpid.replicate": value}).replicate == value


def test_settings_are_derived_from_the_arguments() -> None:
    assert settings_of({}) is PLAIN
    settings = settings_of(
        {
            "x-message-ttl": Int32(5),
            "x-expires": 6,
            "x-max-length": 7,
            "x-max-length-bytes": 8,
            "x-overflow": "reject-publish",
            "x-dead-letter-exchange": "dlx",
            "x-dead-letter-routing-key": "k",
            "x-max-priority": UInt8(9),
            "x-single-active-consumer": True,
            "x-last-value-key": "key",
        }
    )
    assert (settings.ttl_ms, settings.expires_ms, settings.length_max, settings.bytes_max) == (5, 6, 7, 8)
    assert (settings.overflow, settings.dead_letter_exchange, settings.dead_letter_key) == (
        "reject-publish",
        "dlx",
        "k",
    )
    assert (settings.priority_max, settings.single_active, settings.last_value_key) == (9, True, "key")
    assert not settings.counts_deliveries


def test_quorum_queues_limit_deliveries_by_themselves() -> None:
    assert settings_of({"x-queue-type": "quorum"}).delivery_limit == 20
    assert settings_of({"x-queue-type": "quorum", "x-delivery-limit": Int32(3)}).delivery_limit == 3
    assert settings_of({"x-queue-type": "quorum", "x-delivery-limit": Int32(-1)}).delivery_limit == -1
    assert settings_of({"x-queue-type": "quorum"}).counts_deliveries


def test_the_longest_ttl() -> None:
    peer = World().peer()
    peer.declare("q", arguments={"x-message-ttl": 2**27 * 1000, "x-expires": 2**27 * 1000})
    peer.publish("", "q")
    assert peer.get("q") is not None
