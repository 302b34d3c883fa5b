"""The consistent-hash exchange: stable, fair, and with the plugin's texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq import kernel
from pandomq.broker.exchanges.consistent_hash import ConsistentHashExchange
from pandomq.broker.exchanges.exchange import ExchangeTraits
from pandomq.broker.exchanges.hash_ring import POINTS_MAX, HashRing, hash_value
from pandomq.broker.exchanges.message_headers import MessageHeaders
from pandomq.errors import ChannelFault
from pandomq.fieldtable import Int32
from pandomq.properties import Properties, encode_header
from tests.unit.broker.routing.topology import binding, mailboxes

BOXES = mailboxes(f"q{number}" for number in range(8))
KEYS = [f"key {number}" for number in range(300)]
WEIGHTS = st.dictionaries(st.sampled_from(sorted(BOXES)), st.integers(1, 5), min_size=1)


def hashing(weights: Mapping[str, int] | None = None, **arguments: Any) -> ConsistentHashExchange:
    exchange = ConsistentHashExchange("c", ExchangeTraits(arguments=arguments))
    for name, weight in (weights or {}).items():
        exchange.bind(binding(exchange, BOXES[name], str(weight)))
    return exchange


def owners(exchange: ConsistentHashExchange, keys: Sequence[str] = KEYS) -> dict[str, str]:
    return {key: next(iter(exchange.match(key, {}))).name for key in keys}


@given(WEIGHTS, st.data())
def test_the_routes_do_not_depend_on_the_order_of_binds_and_unbinds(
    weights: dict[str, int], data: st.DataObject
) -> None:
    straight = hashing(weights)
    wound = hashing()
    for name, weight in data.draw(st.permutations(list(weights.items()))):
        detour = data.draw(st.none() | st.integers(1, 5))
        if detour is not None:
            other = binding(wound, BOXES[name], str(detour), {"detour": True})
            wound.bind(other)
            owners(wound, KEYS[:10])
            wound.unbind(other)
        wound.bind(binding(wound, BOXES[name], str(weight)))
    assert owners(wound) == owners(straight)


@given(WEIGHTS, st.sampled_from(sorted(BOXES)), st.integers(1, 5))
def test_only_the_newcomers_keys_move(weights: dict[str, int], newcomer: str, weight: int) -> None:
    weights.pop(newcomer, None)
    before = owners(hashing(weights)) if weights else {}
    after = owners(hashing({**weights, newcomer: weight}))
    assert {key for key in before if before[key] != after[key]} <= {key for key in KEYS if after[key] == newcomer}


def test_shares_follow_the_weights() -> None:
    keys = [str(number) for number in range(20_000)]
    shares = Counter(owners(hashing({"q0": 1, "q1": 1, "q2": 2, "q3": 4}), keys).values())
    for name, weight in (("q0", 1), ("q1", 1), ("q2", 2), ("q3", 4)):
        assert shares[name] == pytest.approx(20_000 * weight / 8, rel=0.2)


def test_oldest_binding_to_a_destination_counts() -> None:
    exchange = hashing({"q0": 1, "q1": 1})
    fair = owners(exchange)
    again = binding(exchange, BOXES["q0"], "100")
    exchange.bind(again)
    assert owners(exchange) == fair
    exchange.unbind(binding(exchange, BOXES["q0"], "1"))
    assert owners(exchange) == owners(hashing({"q0": 100, "q1": 1}))
    exchange.unbind(again)
    assert set(owners(exchange).values()) == {"q1"}


def test_without_bindings_nothing_matches() -> None:
    exchange = hashing({"q0": 1})
    exchange.unbind(binding(exchange, BOXES["q0"], "1"))
    assert list(exchange.match("k", {})) == []


def test_weights_of_any_size_are_bounded_in_memory() -> None:
    ring: HashRing[str] = HashRing()
    ring.add("small", b"small", 1)
    ring.add("huge", b"huge", 10**250)
    found = Counter(ring.find(hash_value(str(number).encode())) for number in range(1000))
    assert found["huge"] >= 999
    assert len(ring._owners) <= POINTS_MAX + 1
    ring.remove("huge")
    assert ring.find(0) == "small"
    assert len(ring._owners) == 128


def headers_of(**properties: Any) -> MessageHeaders:
    header = encode_header(0, Properties(**properties))
    return MessageHeaders(kernel.Message(kernel.routing_of("c", "k"), header, b""))


def test_hashes_a_header_instead_of_the_key() -> None:
    exchange = hashing(dict.fromkeys(BOXES, 1), **{"hash-header": "who"})
    assert not exchange.static

    def owner(key: str, value: Any) -> str:
        return next(iter(exchange.match(key, headers_of(headers={"who": value})))).name

    assert len({owner(key, "me") for key in KEYS}) == 1
    assert len({owner("k", key) for key in KEYS}) == len(BOXES)
    assert len({owner("k", Int32(number)) for number in range(300)}) == len(BOXES)
    assert len({next(iter(exchange.match(key, headers_of()))).name for key in KEYS}) == 1


@pytest.mark.parametrize("name", ["message_id", "correlation_id", "timestamp"])
def test_hashes_a_property_instead_of_the_key(name: str) -> None:
    exchange = hashing(dict.fromkeys(BOXES, 1), **{"hash-property": name})
    assert not exchange.static

    def owner(key: str, number: int | None) -> str:
        value = number if name == "timestamp" or number is None else str(number)
        return next(iter(exchange.match(key, headers_of(**{name: value})))).name

    assert len({owner(key, 5) for key in KEYS}) == 1
    assert len({owner(key, None) for key in KEYS}) == 1
    assert len({owner("k", number) for number in range(300)}) == len(BOXES)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("", "The binding key must be an integer: <<>>"),
        ("a", 'The binding key must be an integer: <<"a">>'),
        ("1.5", 'The binding key must be an integer: <<"1.5">>'),
        (" 1", 'The binding key must be an integer: <<" 1">>'),
        ("1_0", 'The binding key must be an integer: <<"1_0">>'),
        ("١", 'The binding key must be an integer: <<"١"/utf8>>'),
        ("0", "The binding key must be greater than 0"),
        ("-1", "The binding key must be greater than 0"),
    ],
)
def test_wrong_weight(key: str, text: str) -> None:
    with pytest.raises(ChannelFault) as raised:
        hashing().check_binding(key, {})
    assert (raised.value.reply_code, raised.value.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


@pytest.mark.parametrize("key", ["1", "+3", "007", "99999999999999999999"])
def test_right_weight(key: str) -> None:
    hashing().check_binding(key, {})
