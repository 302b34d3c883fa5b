"""Exchanges of every type, and their combinations: alternates, bindings among exchanges, CC and BCC."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pika
import pytest
from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, UnroutableError

from .broker_under_test import Names
from .pika_mailbox import Mailbox, take, take_all
from .waiting import barrier


def bound(channel: BlockingChannel, names: Names, exchange: str, key: str = "", **arguments: Any) -> str:
    """A fresh queue bound to the exchange."""
    queue = names.queue(f"q{time.monotonic_ns()}")
    channel.queue_declare(queue)
    channel.queue_bind(queue, exchange, key, arguments)
    return queue


def declared(channel: BlockingChannel, names: Names, kind: str, suffix: str = "exchange", **options: Any) -> str:
    exchange = names.exchange(suffix)
    channel.exchange_declare(exchange, kind, **options)
    return exchange


@pytest.mark.parametrize("kind", ["direct", "fanout", "topic", "headers"])
def test_the_standard_exchanges_are_there(channel: BlockingChannel, kind: str) -> None:
    channel.exchange_declare(f"amq.{kind}", kind, durable=True)
    channel.exchange_declare("amq.match", "headers", durable=True)


def test_every_queue_is_bound_to_the_default_exchange(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue("näme.with.words")
    channel.queue_declare(queue)
    channel.basic_publish("", queue, b"m")
    assert take(channel, queue).method.exchange == ""


def test_two_bindings_that_match_bring_one_copy(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "topic")
    queue = bound(channel, names, exchange, "a.*")
    for key in ("a.#", "#", "a.b"):
        channel.queue_bind(queue, exchange, key)
    channel.basic_publish(exchange, "a.b", b"once")
    assert take_all(channel, queue) == [b"once"]


def test_an_unbound_queue_gets_nothing_more(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "direct")
    queue = bound(channel, names, exchange, "k")
    channel.basic_publish(exchange, "k", b"1")
    channel.queue_unbind(queue, exchange, "k")
    channel.basic_publish(exchange, "k", b"2")
    assert take_all(channel, queue) == [b"1"]


def test_topic_keys_of_many_words(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "topic")
    words = ["word"] * 40
    queue = bound(channel, names, exchange, "#." + ".".join(words[:20]) + ".*.#.word")
    key = ".".join(words)
    channel.basic_publish(exchange, key, b"long")
    channel.basic_publish(exchange, ".".join(words[:5]), b"short")
    assert take_all(channel, queue) == [b"long"]


HEADERS_CASES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"x-match": "all", "a": 1, "b": "x"}, {"a": 1, "b": "x", "c": 3}, True),
    ({"x-match": "all", "a": 1, "b": "x"}, {"a": 1}, False),
    ({"a": 1, "b": "x"}, {"a": 1, "b": "y"}, False),
    ({"x-match": "any", "a": 1, "b": "x"}, {"b": "x"}, True),
    ({"x-match": "any", "a": 1, "b": "x"}, {"a": 2, "b": "y"}, False),
    ({"x-match": "any", "a": 1}, {}, False),
    ({"x-match": "all", "a": 1}, {}, False),
    ({"x-match": "all"}, {}, True),
    ({"x-match": "all", "a": 1}, {"a": "1"}, False),
    # A header that is bound without a value only has to exist.
    ({"x-match": "all", "a": None}, {"a": "whatever"}, True),
    ({"x-match": "all", "a": None}, {"b": 1}, False),
    # Only the with-x variants compare keys that begin with x-.
    ({"x-match": "all", "x-a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "all-with-x", "x-a": 1, "b": 2}, {"b": 2}, False),
    ({"x-match": "all-with-x", "x-a": 1, "b": 2}, {"x-a": 1, "b": 2}, True),
    ({"x-match": "any", "x-a": 1, "b": 2}, {"x-a": 1}, False),
    ({"x-match": "any-with-x", "x-a": 1, "b": 2}, {"x-a": 1}, True),
]


@pytest.mark.parametrize(("binding", "headers", "matches"), HEADERS_CASES)
def test_headers_exchange(
    channel: BlockingChannel, names: Names, binding: dict[str, Any], headers: dict[str, Any], matches: bool
) -> None:
    exchange = declared(channel, names, "headers")
    queue = bound(channel, names, exchange, "", **binding)
    channel.basic_publish(exchange, "ignored", b"m", BasicProperties(headers=headers))
    assert take_all(channel, queue) == ([b"m"] if matches else [])


def test_a_wrong_x_match_is_406(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "headers")
    with pytest.raises(ChannelClosedByBroker) as caught:
        bound(channel, names, exchange, "", **{"x-match": "some"})
    assert caught.value.reply_code == 406
    assert caught.value.reply_text.startswith("PRECONDITION_FAILED - Invalid x-match field value")


def test_the_alternate_exchange_gets_unroutable_messages(channel: BlockingChannel, names: Names) -> None:
    spare = declared(channel, names, "fanout", "spare")
    exchange = declared(channel, names, "direct", arguments={"alternate-exchange": spare})
    wanted, rest = bound(channel, names, exchange, "k"), bound(channel, names, spare)
    channel.confirm_delivery()
    channel.basic_publish(exchange, "k", b"routed", mandatory=True)
    channel.basic_publish(exchange, "other", b"spare", mandatory=True)
    assert take_all(channel, wanted) == [b"routed"]
    left = take(channel, rest)
    assert (left.body, left.method.exchange, left.method.routing_key) == (b"spare", exchange, "other")


def test_alternates_may_form_a_chain_a_ring_and_be_missing(channel: BlockingChannel, names: Names) -> None:
    first, second = names.exchange("first"), names.exchange("second")
    channel.exchange_declare(first, "direct", arguments={"alternate-exchange": second})
    channel.confirm_delivery()
    with pytest.raises(UnroutableError):
        channel.basic_publish(first, "k", b"alternate is missing", mandatory=True)
    channel.exchange_declare(second, "direct", arguments={"alternate-exchange": first})
    with pytest.raises(UnroutableError):
        channel.basic_publish(first, "k", b"round and round", mandatory=True)
    queue = bound(channel, names, second, "k")
    channel.basic_publish(first, "k", b"arrives", mandatory=True)
    assert take_all(channel, queue) == [b"arrives"]


def test_exchanges_bound_to_exchanges_route_on(channel: BlockingChannel, names: Names) -> None:
    source = declared(channel, names, "topic", "source")
    target = declared(channel, names, "direct", "target")
    channel.exchange_bind(target, source, "a.#")
    queue = bound(channel, names, target, "a.b")
    channel.basic_publish(source, "a.b", b"through")
    channel.basic_publish(source, "a.c", b"stops at the target")
    channel.basic_publish(source, "b", b"stops at the source")
    fetched = take(channel, queue)
    # The message names the exchange to which it was published.
    assert (fetched.body, fetched.method.exchange, fetched.method.routing_key) == (b"through", source, "a.b")
    assert take_all(channel, queue) == []
    channel.exchange_unbind(target, source, "a.#")
    channel.basic_publish(source, "a.b", b"unbound")
    assert take_all(channel, queue) == []


def test_a_ring_of_exchanges_brings_one_copy(channel: BlockingChannel, names: Names) -> None:
    ring = [declared(channel, names, "fanout", f"ring{number}") for number in range(3)]
    for number in range(3):
        channel.exchange_bind(ring[(number + 1) % 3], ring[number])
        channel.exchange_bind(ring[number], ring[number])
    queue = bound(channel, names, ring[0])
    channel.queue_bind(queue, ring[2])
    channel.basic_publish(ring[1], "", b"once")
    assert take_all(channel, queue) == [b"once"]


def test_cc_and_bcc_add_routes_and_only_cc_shows(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "direct")
    queues = {key: bound(channel, names, exchange, key) for key in ("to", "cc", "bcc", "nobody")}
    headers = {"CC": ["cc", "to"], "BCC": ["bcc"], "mine": True}
    channel.basic_publish(exchange, "to", b"m", BasicProperties(headers=headers))
    for key in ("to", "cc", "bcc"):
        fetched = take(channel, queues[key])
        assert fetched.properties.headers == {"CC": ["cc", "to"], "mine": True}
        assert fetched.method.routing_key == "to"
        assert take_all(channel, queues[key]) == []
    assert take_all(channel, queues["nobody"]) == []


def test_consistent_hash_keeps_a_key_with_a_queue(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "x-consistent-hash")
    queues = [bound(channel, names, exchange, "100") for _ in range(3)]
    keys = [f"key-{number}" for number in range(200)]
    for _ in range(2):
        for key in keys:
            channel.basic_publish(exchange, key, key.encode())
    shares = [Counter(take_all(channel, queue)) for queue in queues]
    assert sum((share for share in shares), Counter()) == Counter({key.encode(): 2 for key in keys})
    assert all(set(share.values()) == {2} for share in shares), "both copies of a key went to one queue"
    assert all(len(share) > 20 for share in shares), "no queue is left out"


def test_consistent_hash_heeds_weights(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "x-consistent-hash")
    heavy, light = bound(channel, names, exchange, "300"), bound(channel, names, exchange, "100")
    for number in range(800):
        channel.basic_publish(exchange, f"key-{number}", b"m")
    counts = len(take_all(channel, heavy)), len(take_all(channel, light))
    assert sum(counts) == 800
    assert counts[0] > 1.5 * counts[1]


@pytest.mark.parametrize("by", ["hash-header", "hash-property"])
def test_consistent_hash_of_something_else_than_the_key(channel: BlockingChannel, names: Names, by: str) -> None:
    what = {"hash-header": "customer", "hash-property": "message_id"}[by]
    exchange = declared(channel, names, "x-consistent-hash", arguments={by: what})
    queues = [bound(channel, names, exchange, "50") for _ in range(2)]
    for number in range(200):
        customer = str(number % 40)
        properties = BasicProperties(headers={"customer": customer}, message_id=customer)
        channel.basic_publish(exchange, f"random-{number}", customer.encode(), properties)
    shares = [set(take_all(channel, queue)) for queue in queues]
    assert all(shares) and not shares[0] & shares[1]


@pytest.mark.parametrize("weight", ["heavy", "-1"])
def test_consistent_hash_weights_are_numbers(channel: BlockingChannel, names: Names, weight: str) -> None:
    exchange = declared(channel, names, "x-consistent-hash")
    with pytest.raises(ChannelClosedByBroker) as caught:
        bound(channel, names, exchange, weight)
    assert caught.value.reply_text.startswith("PRECONDITION_FAILED - The binding key must be ")


def test_random_exchange_picks_one_queue_each_time(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "x-random")
    queues = [bound(channel, names, exchange, str(number)) for number in range(3)]
    for _ in range(300):
        channel.basic_publish(exchange, "ignored", b"m")
    counts = [len(take_all(channel, queue)) for queue in queues]
    assert sum(counts) == 300
    assert min(counts) > 20


def test_an_auto_delete_exchange_goes_with_its_last_binding(connection: pika.BlockingConnection, names: Names) -> None:
    channel = connection.channel()
    exchange = declared(channel, names, "direct", auto_delete=True)
    queue = bound(channel, names, exchange, "a")
    channel.queue_bind(queue, exchange, "b")
    channel.queue_unbind(queue, exchange, "a")
    channel.exchange_declare(exchange, passive=True)
    channel.queue_delete(queue)
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.exchange_declare(exchange, passive=True)
    assert caught.value.reply_code == 404


def test_deleting_an_exchange_takes_its_bindings_along(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "fanout")
    queue = bound(channel, names, exchange)
    channel.exchange_delete(exchange)
    channel.exchange_declare(exchange, "fanout")
    channel.basic_publish(exchange, "", b"unbound")
    assert take_all(channel, queue) == []


DELAYED = "the delayed message exchange is a plugin there"


@pytest.mark.only_ours(DELAYED)
def test_a_delayed_exchange_holds_messages_back(channel: BlockingChannel, names: Names) -> None:
    exchange = declared(channel, names, "x-delayed-message", arguments={"x-delayed-type": "topic"})
    queue = bound(channel, names, exchange, "a.*")
    mailbox = Mailbox(channel, queue, auto_ack=True)
    began = time.monotonic()
    for delay_ms in (600, 300, 0):
        body = str(delay_ms).encode()
        channel.basic_publish(exchange, "a.b", body, BasicProperties(headers={"x-delay": delay_ms}))
    channel.basic_publish(exchange, "a.b", b"no delay")
    mailbox.wait_for(2)
    barrier(channel, queue)
    assert mailbox.bodies == [b"0", b"no delay"]
    mailbox.wait_for(4)
    assert mailbox.bodies == [b"0", b"no delay", b"300", b"600"]
    assert time.monotonic() - began >= 0.6


@pytest.mark.only_ours(DELAYED)
def test_a_delayed_exchange_needs_a_type_to_route_by(channel: BlockingChannel, names: Names) -> None:
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.exchange_declare(names.exchange(), "x-delayed-message")
    assert caught.value.reply_code == 406
