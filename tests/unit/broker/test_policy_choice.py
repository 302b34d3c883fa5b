"""Which of several policies counts, for what, and what it means beside a queue's arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq import limits, methods
from pandomq.broker.log.commands import DeletePolicy, PutPolicy, PutVhost
from pandomq.broker.queues import queue_settings
from pandomq.broker.views import exchanges, queues
from tests.unit.broker.policy_scene import follow, policies_of, policy, scene, settings_of, withdraw

# Which one counts.


def test_the_highest_priority_counts_alone() -> None:
    world, _ = scene()
    follow(world, {"max-length": 1, "message-ttl": 7}, name="low")
    follow(world, {"max-length": 2}, name="high", priority=5)
    assert (settings_of(world).length_max, settings_of(world).ttl_ms) == (2, -1)
    assert policies_of(world) == ("high", None)
    follow(world, {"max-length": 3}, name="low", priority=6)
    assert policies_of(world) == ("low", None)
    withdraw(world, "low")
    assert policies_of(world) == ("high", None)
    withdraw(world, "high")
    assert policies_of(world) == (None, None)
    assert settings_of(world).length_max == -1


def test_among_equals_the_name_decides() -> None:
    for names in (("a", "b"), ("b", "a")):
        world, _ = scene()
        for name in names:
            follow(world, {"max-length": 1}, name=name)
        assert policies_of(world) == ("a", None)


@pytest.mark.parametrize(
    ("apply_to", "classic", "quorum", "exchange"),
    [
        ("all", True, True, True),
        ("queues", True, True, False),
        ("classic_queues", True, False, False),
        ("quorum_queues", False, True, False),
        ("exchanges", False, False, True),
        ("streams", False, False, False),
    ],
)
def test_apply_to(apply_to: str, classic: bool, quorum: bool, exchange: bool) -> None:
    world, peer = scene()
    peer.declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    peer.call(methods.ExchangeDeclare("qx", "direct"), expect=methods.ExchangeDeclareOk)
    follow(world, {"alternate-exchange": "a", "max-length": 1}, apply_to=apply_to)
    assert policies_of(world, "q")[0] == ("p" if classic else None)
    assert policies_of(world, "qq")[0] == ("p" if quorum else None)
    (view,) = (view for view in exchanges(world.broker) if view.name == "qx")
    assert view.policy == ("p" if exchange else None)


def test_a_policy_that_a_type_cannot_follow_is_not_for_it() -> None:
    world, peer = scene()
    peer.declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    follow(world, {"max-length": 1}, name="fallback")
    follow(world, {"max-length": 2, "queue-mode": "lazy"}, name="classic", priority=1)
    follow(world, {"max-length": 3, "dead-letter-strategy": "at-least-once"}, name="quorum", priority=1)
    assert policies_of(world, "q") == ("classic", None)
    assert policies_of(world, "qq") == ("quorum", None)


def test_a_delivery_limit_for_all_queues_means_those_that_have_one_in_rabbitmq() -> None:
    world, peer = scene()
    peer.declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    follow(world, {"max-length": 1, "delivery-limit": 3}, apply_to="queues")
    assert (policies_of(world, "q"), policies_of(world, "qq")) == ((None, None), ("p", None))
    follow(world, {"max-length": 1, "delivery-limit": 3}, apply_to="classic_queues")
    assert (policies_of(world, "q"), policies_of(world, "qq")) == (("p", None), (None, None))


def test_names_that_do_not_match_are_left_alone() -> None:
    world, peer = scene()
    peer.declare("other")
    follow(world, {"max-length": 1}, pattern="^q$")
    assert policies_of(world, "other") == (None, None)
    assert settings_of(world, "other").length_max == -1


def test_policies_of_another_vhost_are_not_ours() -> None:
    world, _ = scene()
    assert world.administer(PutVhost("v"), PutPolicy("v", "p", ".*", "all", 0, b'{"max-length": 1}')) is None
    assert policies_of(world) == (None, None)


def test_operators_policies_only_tighten() -> None:
    world, _ = scene()
    follow(world, {"max-length": 10, "message-ttl": 5, "overflow": "drop-head", "queue-mode": "lazy"})
    follow(world, {"max-length": 20, "message-ttl": 3, "expires": 9, "overflow": "reject-publish"}, operator=True)
    found = settings_of(world)
    assert (found.length_max, found.ttl_ms, found.expires_ms, found.overflow) == (10, 3, 9, "reject-publish")
    assert policies_of(world) == ("p", "p")
    (view,) = queues(world.broker)
    assert view.effective_policy_definition == {
        "max-length": 10,
        "message-ttl": 3,
        "overflow": "reject-publish",
        "queue-mode": "lazy",
        "expires": 9,
    }
    withdraw(world)
    assert settings_of(world).length_max == 20
    assert policies_of(world) == (None, "p")
    withdraw(world, operator=True)
    (view,) = queues(world.broker)
    assert (view.policy, view.operator_policy, view.effective_policy_definition) == (None, None, {})


@pytest.mark.parametrize(
    ("policies", "operators", "expected"), [(-1, 5, 5), (5, -1, 5), (3, 5, 3), (5, 3, 3), (-1, -1, -1)]
)
def test_the_stricter_delivery_limit(policies: int, operators: int, expected: int) -> None:
    world, _ = scene()
    follow(world, {"delivery-limit": policies}, apply_to="classic_queues")
    follow(world, {"delivery-limit": operators}, apply_to="classic_queues", operator=True)
    assert settings_of(world).delivery_limit == expected


@pytest.mark.parametrize(
    ("arguments", "definition", "setting", "expected"),
    [
        ({"x-max-length": 5}, {"max-length": 3}, "length_max", 3),
        ({"x-max-length": 3}, {"max-length": 5}, "length_max", 3),
        ({"x-max-length-bytes": 5}, {"max-length-bytes": 3}, "bytes_max", 3),
        ({"x-message-ttl": 3}, {"message-ttl": 0}, "ttl_ms", 0),
        ({"x-expires": 500}, {"expires": 300}, "expires_ms", 300),
        ({"x-consumer-timeout": 5}, {"consumer-timeout": 3}, "consumer_timeout_ms", 3),
        ({"x-dead-letter-exchange": "a"}, {"dead-letter-exchange": "b"}, "dead_letter_exchange", "a"),
        ({}, {"dead-letter-exchange": "b"}, "dead_letter_exchange", "b"),
        ({"x-overflow": "drop-head"}, {"overflow": "reject-publish"}, "overflow", "drop-head"),
        ({}, {"overflow": "reject-publish"}, "overflow", "reject-publish"),
        ({"x-delivery-limit": 5}, {"delivery-limit": 3}, "delivery_limit", 3),
        ({"x-delivery-limit": 5}, {"delivery-limit": -1}, "delivery_limit", 5),
        ({"x-replicate": "none"}, {"replicate": "messages"}, "replicate", "none"),
        ({}, {"x-replicate": "all"}, "replicate", "all"),
        ({}, {"max-length": 10**30}, "length_max", 2**62),
        ({}, {"message-ttl": 10**30}, "ttl_ms", limits.EXPIRATION_MS_MAX),
    ],
)
def test_arguments_and_policies(
    arguments: dict[str, Any], definition: dict[str, Any], setting: str, expected: Any
) -> None:
    world, _ = scene(arguments)
    follow(world, definition, apply_to="classic_queues")
    assert getattr(settings_of(world), setting) == expected


@pytest.mark.parametrize(
    ("arguments", "definition", "setting", "expected"),
    [
        ({"x-overflow": "drop-head"}, {"overflow": "reject-publish"}, "overflow", "reject-publish"),
        ({"x-overflow": "reject-publish"}, {"max-length": 1}, "overflow", "reject-publish"),
        ({}, {"max-length": 1}, "delivery_limit", 20),
        ({}, {"delivery-limit": 30}, "delivery_limit", 30),
        ({}, {"delivery-limit": -1}, "delivery_limit", -1),
    ],
)
def test_quorum_queues(arguments: dict[str, Any], definition: dict[str, Any], setting: str, expected: Any) -> None:
    world, _ = scene({"x-queue-type": "quorum", **arguments}, durable=True)
    follow(world, definition)
    assert getattr(settings_of(world), setting) == expected


changes = st.lists(
    st.one_of(
        st.builds(
            policy,
            st.sampled_from(({"max-length": 1}, {"max-length": 2, "queue-mode": "lazy"}, {"message-ttl": 3})),
            name=st.sampled_from("abc"),
            pattern=st.sampled_from((".*", "^q", "1$", "[23]")),
            apply_to=st.sampled_from(("all", "queues", "quorum_queues", "exchanges")),
            priority=st.integers(0, 2),
            operator=st.booleans(),
        ).filter(lambda command: not command.operator or b"queue-mode" not in command.definition),
        st.builds(DeletePolicy, st.just("/"), st.sampled_from("abc"), st.booleans()),
    ),
    max_size=30,
)


@given(changes)
def test_a_queue_informed_of_changes_follows_the_policy_that_it_would_choose_anew(
    history: list[PutPolicy | DeletePolicy],
) -> None:
    world, peer = scene()
    for name, arguments in (("q1", {}), ("q2", {"x-queue-type": "quorum"}), ("q3", {"x-max-length": 2})):
        peer.declare(name, durable=True, arguments=arguments)
        peer.call(methods.ExchangeDeclare(f"x{name}", "direct"), expect=methods.ExchangeDeclareOk)
    vhost = world.broker.state.vhosts["/"]
    for command in history:
        world.administer(command)
        for queue in vhost.queues.values():
            chosen = vhost.policies.of_queue(queue)
            assert queue.policy is chosen
            assert queue.settings == queue_settings.settings_of(queue.arguments, chosen.definition if chosen else {})
        for exchange in vhost.router.exchanges.values():
            assert exchange.policy is vhost.policies.of_exchange(exchange)
