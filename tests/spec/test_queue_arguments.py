"""The arguments of queue.declare: accepted values, refused values, and the reply texts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Channel

INTEGER = '"expected integer, got {}"'
GOOD: list[dict[str, Any]] = [
    {"x-message-ttl": 0},
    {"x-message-ttl": 2**27 * 1000},
    {"x-expires": 1000},
    {"x-expires": 2**33},
    {"x-max-length": 0},
    {"x-max-length-bytes": 0},
    {"x-max-length-bytes": 2**40},
    {"x-overflow": "drop-head"},
    {"x-overflow": "reject-publish"},
    {"x-overflow": "reject-publish-dlx"},
    {"x-dead-letter-exchange": ""},
    {"x-dead-letter-exchange": "not-there-yet", "x-dead-letter-routing-key": "k"},
    {"x-max-priority": 0},
    {"x-max-priority": 255},
    {"x-single-active-consumer": True},
    {"x-queue-type": "classic"},
    {"x-queue-mode": "default"},
    {"x-queue-mode": "lazy"},
    {"x-queue-version": 1},
    {"x-queue-version": 2},
    {"x-queue-master-locator": "client-local"},
    {"x-consumer-timeout": 60_000},
    {"x-something-else": "ignored"},
]
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"x-message-ttl": "abc"}, "x-message-ttl", INTEGER.format("longstr")),
    ({"x-message-ttl": 1.5}, "x-message-ttl", INTEGER.format("double")),
    ({"x-message-ttl": True}, "x-message-ttl", INTEGER.format("bool")),
    ({"x-message-ttl": None}, "x-message-ttl", INTEGER.format("void")),
    ({"x-message-ttl": b"5"}, "x-message-ttl", INTEGER.format("binary")),
    ({"x-message-ttl": -1}, "x-message-ttl", "{value_negative,-1}"),
    ({"x-expires": "a"}, "x-expires", INTEGER.format("longstr")),
    ({"x-expires": 0}, "x-expires", "{value_zero,0}"),
    ({"x-expires": -1}, "x-expires", "{value_negative,-1}"),
    ({"x-max-length": "a"}, "x-max-length", INTEGER.format("longstr")),
    ({"x-max-length": -1}, "x-max-length", "{value_negative,-1}"),
    ({"x-max-length-bytes": "a"}, "x-max-length-bytes", INTEGER.format("longstr")),
    ({"x-max-length-bytes": -1}, "x-max-length-bytes", "{value_negative,-1}"),
    ({"x-max-priority": "a"}, "x-max-priority", INTEGER.format("longstr")),
    ({"x-max-priority": -1}, "x-max-priority", "{value_negative,-1}"),
    ({"x-max-priority": 256}, "x-max-priority", "{max_value_exceeded,256}"),
    ({"x-overflow": "explode"}, "x-overflow", "invalid_overflow"),
    ({"x-overflow": 5}, "x-overflow", "{unacceptable_type,signedint}"),
    ({"x-dead-letter-routing-key": "k"}, "x-dead-letter-routing-key", "routing_key_but_no_dlx_defined"),
    ({"x-dead-letter-routing-key": 5}, "x-dead-letter-routing-key", "{unacceptable_type,signedint}"),
    ({"x-single-active-consumer": "yes"}, "x-single-active-consumer", "{unacceptable_type,longstr}"),
    ({"x-queue-type": "nonsense"}, "x-queue-type", "\"unsupported queue type 'nonsense'\""),
    ({"x-queue-type": 5}, "x-queue-type", "{unacceptable_type,signedint}"),
    ({"x-queue-mode": "nonsense"}, "x-queue-mode", "\"unsupported queue mode 'nonsense'\""),
]


@pytest.mark.parametrize("arguments", GOOD, ids=str)
def test_good(channel: Channel, name: str, arguments: dict[str, Any]) -> None:
    for _ in range(2):
        assert channel.declare_queue(name, arguments=arguments) == name


@pytest.mark.parametrize(("arguments", "argument", "reason"), BAD, ids=str)
def test_bad(channel: Channel, name: str, arguments: dict[str, Any], argument: str, reason: str) -> None:
    text = f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{name}' in vhost '/': {reason}"
    channel.refused(406, text, "queue.declare", queue=name, exclusive=True, arguments=arguments)


def test_a_dead_letter_exchange_that_is_no_string_is_refused(channel: Channel, name: str) -> None:
    text = "PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' in "
    text += f"queue '{name}' in vhost '/'"
    arguments = {"x-dead-letter-exchange": 5}
    channel.refused(406, text, "queue.declare", queue=name, exclusive=True, arguments=arguments)


def test_a_refused_declare_leaves_no_queue(channel: Channel, name: str) -> None:
    channel.refused(406, "PRECONDITION_FAILED - …", "queue.declare", queue=name, arguments={"x-expires": 0})
    again = channel.connection.channel()
    again.refused(404, f"NOT_FOUND - no queue '{name}' in vhost '/'", "queue.declare", queue=name, passive=True)


class TestQuorum:
    """x-queue-type: quorum: a shared queue at a reliable level."""

    def declare(self, channel: Channel, name: str, **arguments: Any) -> None:
        full = {"x-queue-type": "quorum"} | {key.replace("_", "-"): value for key, value in arguments.items()}
        channel.rpc("queue.declare", queue=name, durable=True, arguments=full)

    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"x_delivery_limit": 3},
            {"x_message_ttl": 60_000},
            {"x_max_length": 100, "x_overflow": "reject-publish"},
            {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "k"},
        ],
    )
    def test_is_taken(self, channel: Channel, name: str, arguments: dict[str, Any]) -> None:
        self.declare(channel, name, **arguments)
        channel.rpc("confirm.select")
        channel.publish_confirmed("m", name, delivery_mode=2)
        found = channel.get(name)
        assert found is not None
        assert found.body == b"m"

    @pytest.mark.parametrize(
        ("flags", "wrong"),
        [
            ({"durable": False}, "non-durable"),
            ({"durable": True, "exclusive": True}, "exclusive-owner"),
            ({"durable": True, "auto_delete": True}, "auto-delete"),
        ],
    )
    def test_has_to_be_durable_and_shared(
        self, channel: Channel, name: str, flags: dict[str, bool], wrong: str
    ) -> None:
        text = f"PRECONDITION_FAILED - invalid property '{wrong}' for queue '{name}' in vhost '/'"
        arguments = {"x-queue-type": "quorum"}
        channel.refused(406, text, "queue.declare", queue=name, arguments=arguments, **flags)

    def test_differs_from_a_classic_queue(self, channel: Channel, name: str) -> None:
        self.declare(channel, name)
        text = f"PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue '{name}' in vhost '/': "
        text += "received none but current is the value 'quorum' of type 'longstr'"
        channel.refused(406, text, "queue.declare", queue=name, durable=True)
