"""Invalid policies, and the error messages."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import limits
from pandomq.broker.administration import administration_views as views
from pandomq.broker.log.commands import DeletePolicy, PutPolicy
from tests.unit.broker.conversation import World
from tests.unit.broker.policy_scene import follow, policy

# Invalid policies.


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ({"foo": 1}, '[{<<"foo">>,1}] are not recognised policy settings'),
        ({"foo": 1, "max-length": 5}, '[{<<"foo">>,1}] are not recognised policy settings'),
        ({"max-length": -1}, "-1 is not a valid maximum length"),
        ({"max-length": "x"}, '<<"x">> is not a valid maximum length'),
        ({"max-length": 1.5}, "1.5 is not a valid maximum length"),
        ({"max-length": {"a": 1}}, '#{<<"a">> => 1} is not a valid maximum length'),
        ({}, "no policy provided"),
        ({"overflow": "zzz"}, '<<"zzz">> is not a valid overflow value'),
        ({"overflow": ["a"]}, '[<<"a">>] is not a valid overflow value'),
        ({"expires": 0}, "0 is not a valid queue expiry"),
        ({"message-ttl": True}, "true is not a valid message TTL"),
        ({"dead-letter-exchange": 5}, "5 is not a valid dead letter exchange name"),
        ({"alternate-exchange": None}, "null is not a valid alternate exchange name"),
        ({"ha-mode": "x"}, '<<"x">> is not a valid ha-mode value'),
        ({"queue-mode": ["a"]}, '[<<"a">>] is not a valid queue-mode value'),
        ({"queue-version": 3}, "3 is not a valid queue-version value"),
        ({"queue-version": True}, "true is not a valid queue-version value"),
        ({"delivery-limit": "x"}, '<<"x">> is not a valid delivery limit'),
        ({"replicate": "twice"}, '<<"twice">> is not a valid replicate value'),
    ],
)
def test_definitions_that_are_refused_as_rabbitmq_does(definition: dict[str, Any], text: str) -> None:
    fault = World().administer(policy(definition))
    assert fault is not None
    assert (fault.reply_code, fault.reply_text) == (406, f"Validation failed\n\n{text}\n")


@pytest.mark.parametrize(
    "definition",
    [
        {"ha-mode": "all", "ha-sync-mode": "automatic"},
        {"ha-mode": "exactly", "ha-params": 2},
        {"queue-mode": "lazy", "queue-version": 2},
        {"queue-master-locator": "min-masters", "queue-leader-locator": "balanced"},
        {"max-age": "1D", "initial-cluster-size": 3, "stream-max-segment-size-bytes": 5},
        {"retain-until-archived": "archive", "max-unarchived-bytes": 0},
        {"max-in-memory-length": 1, "max-in-memory-bytes": 1, "target-group-size": 3},
    ],
)
def test_definitions_that_are_kept(definition: dict[str, Any]) -> None:
    world = World()
    follow(world, definition)
    (view,) = views.policies(world.broker, operator=False)
    assert view.definition == definition


def test_operator_policies_have_fewer_keys() -> None:
    fault = World().administer(policy({"dead-letter-exchange": "x"}, operator=True))
    assert fault is not None
    assert fault.reply_text == (
        'Validation failed\n\n[{<<"dead-letter-exchange">>,<<"x">>}] are not recognised policy settings\n'
    )


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            policy({"max-length": 1}, pattern="("),
            'pattern should be regular expression but is invalid: {"missing )",1}',
        ),
        (
            policy({"max-length": 1}, apply_to="zzz"),
            "apply-to 'zzz' unrecognised; should be one of: 'queues', 'classic_queues', 'quorum_queues', 'streams', "
            "'exchanges', or 'all'",
        ),
        (policy({"max-length": 1}, priority=2**40), "priority should be a number of at most 2147483647"),
        (policy({"max-length": 1}, name=""), "the policy name is empty"),
        (policy({"max-length": 1}, name="x" * 256), "the policy name has 256 bytes: at most 255 are allowed"),
        (policy({"dead-letter-routing-key": "k" * 256}), "is not a valid dead letter routing key"),
        (PutPolicy("/", "p", "", "all", 0, b"{"), "Could not parse JSON document"),
        (PutPolicy("/", "p", "", "all", 0, b"[1]"), "definition must be a dictionary: [1]"),
        (PutPolicy("/", "p", "", "all", 0, b'{"a":"\xff"}'), "Could not parse JSON document"),
        (PutPolicy("/", "p", "", "all", 0, b'{"dead-letter-exchange":"\\ud800"}'), "Could not parse JSON document"),
        (PutPolicy("/", "p", "", "all", 0, b"[" * 16000), "Could not parse JSON document"),
        (PutPolicy("/", "p", "", "all", 0, b" " * 20_000), "definition is longer than 16384 bytes"),
        (DeletePolicy("/", "p"), "no policy 'p' in vhost '/'"),
        (DeletePolicy("/", "p", True), "no policy 'p' in vhost '/'"),
    ],
)
def test_other_malformed_policies_are_refused(command: PutPolicy, text: str) -> None:
    world = World()
    fault = world.administer(command)
    assert fault is not None and text in fault.reply_text
    assert world.entries == []


def test_all_errors_of_a_policy_are_reported() -> None:
    fault = World().administer(policy({"max-length": -1}, pattern="(", apply_to="x"))
    assert fault is not None
    lines = fault.reply_text.splitlines()
    assert [line.split()[0] for line in lines if line] == ["Validation", "pattern", "apply-to", "-1"]


def test_the_number_of_policies_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POLICIES_PER_VHOST_MAX", 2)
    world = World()
    follow(world, {"max-length": 1}, name="a")
    follow(world, {"max-length": 1}, name="b", operator=True)
    fault = world.administer(policy({"max-length": 1}, name="c"))
    assert fault is not None and fault.reply_code == 406
    follow(world, {"max-length": 2}, name="a")
