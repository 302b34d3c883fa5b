"""Dead letters: their reasons, their route, and the content of x-death."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.client import Channel
from tests.support.fields import Typed, parse_content_header
from tests.support.methods import Method


@pytest.fixture
def grave(channel: Channel) -> str:
    """A queue for dead letters, reached through the default exchange by its name."""
    return channel.declare_queue()


def mortal(channel: Channel, grave: str, name: str = "", **arguments: Any) -> str:
    """A queue whose dead letters go to the grave."""
    more = {"x-" + key.replace("_", "-"): value for key, value in arguments.items()}
    return channel.declare_queue(
        name, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave} | more
    )


def buried(channel: Channel, grave: str) -> Method:
    """Returns the next dead letter; dead letters may take a moment to arrive."""
    deadline = time.monotonic() + 10
    while (found := channel.get(grave)) is None:
        assert time.monotonic() < deadline, "no dead letter"
        time.sleep(0.01)
    return found


def deaths(method: Method) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = method.headers["x-death"]
    return found


def reject_one(channel: Channel, queue: str) -> None:
    found = channel.get(queue, no_ack=False)
    assert found is not None
    channel.send("basic.reject", delivery_tag=found.delivery_tag, requeue=False)


@pytest.mark.parametrize("answer", ["basic.reject", "basic.nack"])
def test_rejected(channel: Channel, grave: str, answer: str) -> None:
    queue = mortal(channel, grave)
    before = datetime.now(UTC).timestamp()
    channel.publish("m", queue, message_id="id", headers={"own": 1})
    assert channel.get(queue, no_ack=False) is not None
    channel.send(answer, delivery_tag=1, requeue=False)
    found = buried(channel, grave)
    [death] = deaths(found)
    assert abs(death.pop("time").timestamp() - before) < 5
    assert death == {"count": 1, "reason": "rejected", "queue": queue, "exchange": "", "routing-keys": [queue]}
    assert (found.body, found.properties["message_id"], found.headers["own"]) == (b"m", "id", 1)
    assert (found.exchange, found.routing_key, found.redelivered) == ("", grave, False)


def test_the_types_of_x_death(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave)
    channel.publish("m", queue)
    reject_one(channel, queue)
    _, properties = parse_content_header(buried(channel, grave).header, typed=True)
    x_death = properties["headers"]["x-death"]
    assert x_death.tag == "A"
    [death] = x_death.value
    assert death.tag == "F"
    tags = {key: value.tag for key, value in death.value.items()}
    assert tags == {"count": "l", "reason": "S", "queue": "S", "time": "T", "exchange": "S", "routing-keys": "A"}
    assert [key.tag for key in death.value["routing-keys"].value] == ["S"]


def test_the_first_death_has_headers_of_its_own(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave)
    channel.publish("m", queue)
    reject_one(channel, queue)
    headers = buried(channel, grave).headers
    first = [headers[f"x-first-death-{what}"] for what in ("reason", "queue", "exchange")]
    assert first == ["rejected", queue, ""]


@pytest.mark.ours_only
def test_the_last_death_has_headers_of_its_own(channel: Channel, grave: str) -> None:
    second = mortal(channel, grave, max_length=0)
    first = mortal(channel, second)
    channel.publish("m", first)
    reject_one(channel, first)
    headers = buried(channel, grave).headers
    assert [headers[f"x-first-death-{what}"] for what in ("reason", "queue", "exchange")] == ["rejected", first, ""]
    assert [headers[f"x-last-death-{what}"] for what in ("reason", "queue", "exchange")] == ["maxlen", second, ""]


@pytest.mark.ours_only
def test_an_x_death_that_a_client_made_up_is_not_counted_on(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave)
    record = {"queue": queue, "reason": "rejected", "count": Typed("l", 7), "exchange": "", "routing-keys": [queue]}
    channel.publish("m", queue, headers={"x-death": [record], "own": 1})
    reject_one(channel, queue)
    found = buried(channel, grave)
    assert [death["count"] for death in deaths(found)] == [1]
    assert found.headers["own"] == 1


@pytest.mark.ours_only
@pytest.mark.parametrize("wrong", ["text", 5, [1, 2], [{"queue": 7, "reason": [], "count": "x"}], {"a": 1}, None])
def test_a_malformed_x_death_is_replaced(channel: Channel, grave: str, wrong: object) -> None:
    queue = mortal(channel, grave)
    channel.publish("m", queue, headers={"x-death": wrong, "x-first-death-queue": wrong})
    reject_one(channel, queue)
    assert deaths(buried(channel, grave))[0]["queue"] == queue


def test_expired_by_the_queue(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave, message_ttl=50)
    channel.publish("m", queue)
    [death] = deaths(buried(channel, grave))
    assert (death["reason"], death["count"], death["queue"]) == ("expired", 1, queue)
    assert "original-expiration" not in death


def test_expired_by_the_message_loses_its_expiration(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave)
    channel.publish("m", queue, expiration="50")
    found = buried(channel, grave)
    assert "expiration" not in found.properties
    [death] = deaths(found)
    assert (death["reason"], death["original-expiration"]) == ("expired", "50")


def test_overflow(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave, max_length=1)
    for number in range(3):
        channel.publish(str(number), queue)
    found = [buried(channel, grave) for _ in range(2)]
    assert [method.body for method in found] == [b"0", b"1"]
    assert [deaths(method)[0]["reason"] for method in found] == ["maxlen", "maxlen"]
    assert channel.drain(queue) == [b"2"]


def test_reject_publish_drops_and_reject_publish_dlx_buries(channel: Channel, grave: str) -> None:
    silent = mortal(channel, grave, max_length=0, overflow="reject-publish")
    telling = mortal(channel, grave, max_length=0, overflow="reject-publish-dlx")
    channel.rpc("confirm.select")
    for queue in (silent, telling):
        channel.publish("m", queue)
        channel.expect("basic.nack")
    assert deaths(buried(channel, grave))[0]["queue"] == telling
    assert channel.get(grave) is None


def test_acked_purged_and_deleted_messages_are_no_dead_letters(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave)
    for number in range(3):
        channel.publish(str(number), queue)
    assert channel.get(queue, no_ack=False) is not None
    channel.send("basic.ack", delivery_tag=1)
    channel.rpc("queue.purge", queue=queue)
    channel.publish("m", queue)
    channel.rpc("queue.delete", queue=queue)
    channel.expect_nothing()
    assert channel.counts(grave) == (0, 0)


def test_requeued_messages_are_no_dead_letters(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave)
    channel.publish("m", queue)
    assert channel.get(queue, no_ack=False) is not None
    channel.send("basic.reject", delivery_tag=1, requeue=True)
    assert channel.drain(queue) == [b"m"]
    assert channel.counts(grave) == (0, 0)


def test_without_a_key_of_its_own_a_dead_letter_keeps_its_keys(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "topic")
    grave = channel.declare_queue()
    channel.bind(grave, name, "some.#")
    queue = channel.declare_queue(arguments={"x-dead-letter-exchange": name})
    channel.bind(queue, "amq.topic", f"some.{name}")
    channel.publish("m", f"some.{name}", "amq.topic")
    reject_one(channel, queue)
    found = buried(channel, grave)
    assert (found.exchange, found.routing_key) == (name, f"some.{name}")
    [death] = deaths(found)
    assert (death["exchange"], death["routing-keys"]) == ("amq.topic", [f"some.{name}"])


def test_dead_letters_for_a_missing_exchange_are_dropped(channel: Channel, name: str) -> None:
    queue = channel.declare_queue(arguments={"x-dead-letter-exchange": name})
    channel.publish("m", queue)
    reject_one(channel, queue)
    channel.expect_nothing()
    assert channel.counts(queue) == (0, 0)


def test_an_exchange_may_be_declared_later(channel: Channel, name: str) -> None:
    queue = channel.declare_queue(arguments={"x-dead-letter-exchange": name})
    grave = channel.declare_queue()
    channel.declare_exchange(name, "fanout")
    channel.bind(grave, name)
    channel.publish("m", queue)
    reject_one(channel, queue)
    assert buried(channel, grave).body == b"m"


@pytest.mark.ours_only
def test_deaths_in_several_queues_are_listed_the_latest_first(channel: Channel, grave: str) -> None:
    third = mortal(channel, grave)
    second = mortal(channel, third, message_ttl=50)
    first = mortal(channel, second, max_length=0)
    channel.publish("m", first)
    while channel.counts(third)[0] == 0:
        time.sleep(0.01)
    reject_one(channel, third)
    found = deaths(buried(channel, grave))
    assert [(death["queue"], death["reason"], death["count"]) for death in found] == [
        (third, "rejected", 1),
        (second, "expired", 1),
        (first, "maxlen", 1),
    ]


def test_the_same_death_again_is_counted(channel: Channel, name: str) -> None:
    """A retry loop: rejected messages wait in another queue and come back."""
    work, wait = name + "-work", name + "-wait"
    mortal(channel, wait, work)
    mortal(channel, work, wait, message_ttl=50)
    channel.publish("m", work)
    for round_number in range(1, 4):
        found = taken(channel, work)
        counts = {(death["queue"], death["reason"]): death["count"] for death in found.headers.get("x-death", [])}
        rounds = round_number - 1
        assert counts == ({(work, "rejected"): rounds, (wait, "expired"): rounds} if rounds else {})
        channel.send("basic.reject", delivery_tag=found.delivery_tag, requeue=False)


def taken(channel: Channel, queue: str) -> Method:
    deadline = time.monotonic() + 10
    while (found := channel.get(queue, no_ack=False)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_a_circle_without_a_reject_ends(channel: Channel, name: str) -> None:
    one, two = name + "-1", name + "-2"
    mortal(channel, two, one, message_ttl=30)
    mortal(channel, one, two, message_ttl=30)
    channel.publish("m", one)
    deadline = time.monotonic() + 10
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.3:
        assert time.monotonic() < deadline, "the message goes round for ever"
        if channel.counts(one)[0] or channel.counts(two)[0]:
            quiet_since = time.monotonic()
        time.sleep(0.01)


def test_a_queue_that_is_its_own_dead_letter_queue_drops_expired_messages(channel: Channel, name: str) -> None:
    mortal(channel, name, name, message_ttl=30)
    channel.publish("m", name)
    time.sleep(0.3)
    assert channel.counts(name) == (0, 0)


def test_a_queue_that_is_its_own_dead_letter_queue_keeps_rejected_messages(channel: Channel, name: str) -> None:
    mortal(channel, name, name)
    channel.publish("m", name)
    for count in range(3):
        found = taken(channel, name)
        assert [death["count"] for death in found.headers.get("x-death", [])] == ([count] if count else [])
        channel.send("basic.reject", delivery_tag=found.delivery_tag, requeue=False)


def test_many_at_once(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave)
    for number in range(100):
        channel.publish(str(number), queue)
    for _ in range(100):
        channel.get(queue, no_ack=False)
    channel.send("basic.nack", delivery_tag=100, multiple=True, requeue=False)
    found = [buried(channel, grave).body for _ in range(100)]
    assert found == [str(number).encode() for number in range(100)]


def test_persistence_and_other_properties_are_kept(channel: Channel, grave: str) -> None:
    queue = mortal(channel, grave)
    kept: dict[str, Any] = {
        "delivery_mode": 2,
        "priority": 3,
        "content_type": "a/b",
        "correlation_id": "c",
        "timestamp": 77,
    }
    channel.publish("m", queue, **kept)
    reject_one(channel, queue)
    found = buried(channel, grave).properties
    assert {key: found[key] for key in kept} == kept
