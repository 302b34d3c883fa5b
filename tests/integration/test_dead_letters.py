"""Dead letters: their route, and their x-death headers, entry by entry, as RabbitMQ writes them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.compat import long

from .broker_under_test import Names
from .pika_mailbox import Fetched, is_empty, put, take, take_all
from .waiting import wait_until

CLOCKS_APART_S = 120


def declare_with_grave(channel: BlockingChannel, names: Names, **arguments: Any) -> tuple[str, str]:
    """A queue, and the queue its dead letters go to."""
    queue, grave = names.queue("work"), names.queue("grave")
    channel.queue_declare(grave)
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave}
    durable = arguments.get("x-queue-type") == "quorum"
    channel.queue_declare(queue, durable=durable, arguments={**dead, **arguments})
    return queue, grave


def reject(channel: BlockingChannel, queue: str) -> None:
    channel.basic_reject(take(channel, queue, auto_ack=False).method.delivery_tag, requeue=False)


def deaths(message: Fetched) -> list[dict[str, Any]]:
    """Returns the x-death table without its times, after a check of the times and of the integers' width."""
    headers = message.properties.headers
    assert headers is not None
    now = datetime.datetime.now(datetime.UTC)
    entries = []
    for entry in headers["x-death"]:
        assert abs((now - entry["time"]).total_seconds()) < CLOCKS_APART_S
        assert isinstance(entry["count"], long), "RabbitMQ writes a 64-bit count"
        entries.append({key: value for key, value in entry.items() if key != "time"})
    return entries


def first_death(message: Fetched) -> tuple[str, str, str]:
    headers = message.properties.headers
    assert headers is not None
    return tuple(headers[f"x-first-death-{what}"] for what in ("queue", "exchange", "reason"))


def test_an_expired_message(channel: BlockingChannel, names: Names) -> None:
    queue, grave = declare_with_grave(channel, names, **{"x-message-ttl": 20})
    put(channel, queue, [b"m"], headers={"mine": 1}, message_id="id", delivery_mode=2)
    dead = take(channel, grave)
    entry = {"count": 1, "reason": "expired", "queue": queue, "exchange": "", "routing-keys": [queue]}
    assert deaths(dead) == [entry]
    assert first_death(dead) == (queue, "", "expired")
    assert (dead.method.exchange, dead.method.routing_key, dead.method.redelivered) == ("", grave, False)
    assert dead.properties.headers is not None and dead.properties.headers["mine"] == 1
    assert (dead.body, dead.properties.message_id, dead.properties.delivery_mode) == (b"m", "id", 2)


def test_a_message_with_its_own_expiration_loses_it(channel: BlockingChannel, names: Names) -> None:
    """Otherwise it would expire in the dead letter queue as well."""
    queue, grave = declare_with_grave(channel, names)
    put(channel, queue, [b"m"], expiration="15")
    dead = take(channel, grave)
    [entry] = deaths(dead)
    assert (entry["reason"], entry["original-expiration"]) == ("expired", "15")
    assert dead.properties.expiration is None


def test_a_message_that_outlives_its_time_in_a_consumers_hands(channel: BlockingChannel, names: Names) -> None:
    """Unacked messages do not expire, but their time continues: they expire when they are requeued."""
    queue, grave = declare_with_grave(channel, names, **{"x-message-ttl": 60})
    put(channel, queue, [b"held"])
    held = take(channel, queue, auto_ack=False)
    put(channel, queue, [b"later"])
    assert take(channel, grave).body == b"later"
    channel.basic_nack(held.method.delivery_tag, requeue=True)
    dead = take(channel, grave)
    assert (dead.body, [entry["reason"] for entry in deaths(dead)]) == (b"held", ["expired"])


def test_a_rejected_message(channel: BlockingChannel, names: Names) -> None:
    queue, grave = declare_with_grave(channel, names)
    put(channel, queue, [b"m"])
    reject(channel, queue)
    dead = take(channel, grave)
    entry = {"count": 1, "reason": "rejected", "queue": queue, "exchange": "", "routing-keys": [queue]}
    assert deaths(dead) == [entry]
    assert first_death(dead) == (queue, "", "rejected")


def test_an_overflowing_message(channel: BlockingChannel, names: Names) -> None:
    queue, grave = declare_with_grave(channel, names, **{"x-max-length": 1})
    put(channel, queue, [b"old", b"new"])
    dead = take(channel, grave)
    assert dead.body == b"old"
    entry = {"count": 1, "reason": "maxlen", "queue": queue, "exchange": "", "routing-keys": [queue]}
    assert deaths(dead) == [entry]
    assert take_all(channel, queue) == [b"new"]


def test_a_refused_message_with_reject_publish_dlx(channel: BlockingChannel, names: Names) -> None:
    queue, grave = declare_with_grave(channel, names, **{"x-max-length": 1, "x-overflow": "reject-publish-dlx"})
    put(channel, queue, [b"old", b"new"])
    dead = take(channel, grave)
    assert dead.body == b"new"
    assert [(e["reason"], e["queue"], e["count"]) for e in deaths(dead)] == [("maxlen", queue, 1)]
    assert take_all(channel, queue) == [b"old"]


def test_a_message_delivered_too_often(channel: BlockingChannel, names: Names) -> None:
    queue, grave = declare_with_grave(channel, names, **{"x-queue-type": "quorum", "x-delivery-limit": 2})
    put(channel, queue, [b"m"])
    for attempt in range(3):
        fetched = take(channel, queue, auto_ack=False)
        # On the first delivery RabbitMQ 3.10 sends 0, and RabbitMQ 4 omits the header.
        assert (fetched.properties.headers or {}).get("x-delivery-count", 0) == attempt
        assert fetched.method.redelivered == (attempt > 0)
        channel.basic_nack(fetched.method.delivery_tag, requeue=True)
    dead = take(channel, grave)
    entry = {"count": 1, "reason": "delivery_limit", "queue": queue, "exchange": "", "routing-keys": [queue]}
    assert deaths(dead) == [entry]
    assert first_death(dead) == (queue, "", "delivery_limit")
    assert is_empty(channel, queue)


def test_without_a_routing_key_of_their_own_they_keep_theirs(channel: BlockingChannel, names: Names) -> None:
    exchange, graveyard = names.exchange(), names.exchange("graveyard")
    first, second, grave = names.queue("first"), names.queue("second"), names.queue("grave")
    for name in (exchange, graveyard):
        channel.exchange_declare(name, "direct")
    channel.queue_declare(first, arguments={"x-dead-letter-exchange": graveyard})
    channel.queue_declare(second, arguments={"x-dead-letter-exchange": graveyard, "x-dead-letter-routing-key": "end"})
    channel.queue_declare(grave)
    channel.queue_bind(first, exchange, "start")
    channel.queue_bind(second, graveyard, "start")
    channel.queue_bind(grave, graveyard, "end")
    channel.basic_publish(exchange, "start", b"m", BasicProperties(headers={"CC": ["other"], "BCC": ["hidden"]}))
    reject(channel, first)
    fetched = take(channel, second, auto_ack=False)
    assert (fetched.method.exchange, fetched.method.routing_key) == (graveyard, "start")
    assert fetched.properties.headers is not None and fetched.properties.headers["CC"] == ["other"]
    channel.basic_reject(fetched.method.delivery_tag, requeue=False)
    dead = take(channel, grave)
    keys = ["start", "other"]
    assert deaths(dead) == [
        {"count": 1, "reason": "rejected", "queue": second, "exchange": graveyard, "routing-keys": keys},
        {"count": 1, "reason": "rejected", "queue": first, "exchange": exchange, "routing-keys": keys},
    ]
    assert first_death(dead) == (first, exchange, "rejected")
    assert dead.properties.headers is not None and "CC" not in dead.properties.headers
    assert (dead.method.exchange, dead.method.routing_key) == (graveyard, "end")


def test_a_retry_loop_counts_its_rounds(channel: BlockingChannel, names: Names) -> None:
    """The usual delayed retry: rejected from work, kept in a queue with a TTL, back to work."""
    work, wait = names.queue("work"), names.queue("wait")
    channel.queue_declare(work, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait})
    channel.queue_declare(
        wait,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": work, "x-message-ttl": 10},
    )
    put(channel, work, [b"m"])
    reject(channel, work)
    for count in (1, 2, 3):
        fetched = take(channel, work, auto_ack=False)
        assert deaths(fetched) == [
            {"count": count, "reason": "expired", "queue": wait, "exchange": "", "routing-keys": [wait]},
            {"count": count, "reason": "rejected", "queue": work, "exchange": "", "routing-keys": [work]},
        ]
        assert first_death(fetched) == (work, "", "rejected")
        assert not fetched.method.redelivered
        channel.basic_reject(fetched.method.delivery_tag, requeue=False)


@pytest.mark.only_ours("RabbitMQ 3.10 tells of the first death only, 4.x of the last one too")
def test_the_headers_name_the_last_death_too(channel: BlockingChannel, names: Names) -> None:
    first, second, grave = names.queue("first"), names.queue("second"), names.queue("grave")
    channel.queue_declare(grave)
    for queue, target in ((first, second), (second, grave)):
        channel.queue_declare(queue, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target})
    put(channel, first, [b"m"])
    reject(channel, first)
    reject(channel, second)
    headers = take(channel, grave).properties.headers
    assert headers is not None
    last = [headers[f"x-last-death-{what}"] for what in ("queue", "exchange", "reason")]
    assert last == [second, "", "rejected"]


def test_a_cycle_without_rejections_is_cut(channel: BlockingChannel, names: Names) -> None:
    first, second, witness = names.queue("first"), names.queue("second"), names.queue("witness")
    fanout = names.exchange()
    channel.exchange_declare(fanout, "fanout")
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": first, "x-message-ttl": 20}
    for queue, arguments in ((second, back), (witness, {})):
        channel.queue_declare(queue, arguments=arguments)
        channel.queue_bind(queue, fanout)
    channel.queue_declare(first, arguments={"x-dead-letter-exchange": fanout, "x-message-ttl": 20})
    put(channel, first, [b"m"])
    # The cycle runs once: from the first queue to the second, and then the message is dropped, not put into the first
    # again.
    assert [e["queue"] for e in deaths(take(channel, witness))] == [first]
    wait_until(lambda: is_empty(channel, second), "the message's end in the second queue")
    # Had it entered the first queue again, it would reach the witness once more, and before this later message.
    put(channel, first, [b"later"])
    assert take(channel, witness).body == b"later"


@pytest.mark.parametrize("exists", [False, True])
def test_a_dead_letter_exchange_that_routes_nowhere_loses_them(
    channel: BlockingChannel, names: Names, exists: bool
) -> None:
    queue, exchange = names.queue(), names.exchange()
    if exists:
        channel.exchange_declare(exchange, "direct")
    channel.queue_declare(queue, arguments={"x-dead-letter-exchange": exchange})
    put(channel, queue, [b"m"])
    reject(channel, queue)
    put(channel, queue, [b"next"])
    assert take_all(channel, queue) == [b"next"]


def test_a_dead_letter_exchange_may_be_declared_later(channel: BlockingChannel, names: Names) -> None:
    queue, exchange, grave = names.queue(), names.exchange(), names.queue("grave")
    channel.queue_declare(queue, arguments={"x-dead-letter-exchange": exchange})
    put(channel, queue, [b"m"])
    channel.exchange_declare(exchange, "fanout")
    channel.queue_declare(grave)
    channel.queue_bind(grave, exchange)
    reject(channel, queue)
    assert take(channel, grave).body == b"m"


def test_a_negatively_acked_batch_is_dead_lettered_in_order(channel: BlockingChannel, names: Names) -> None:
    queue, grave = declare_with_grave(channel, names)
    bodies = [str(number).encode() for number in range(20)]
    put(channel, queue, bodies)
    last = [take(channel, queue, auto_ack=False) for _ in bodies][-1]
    channel.basic_nack(last.method.delivery_tag, multiple=True, requeue=False)
    assert [take(channel, grave).body for _ in bodies] == bodies
