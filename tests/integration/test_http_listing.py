"""Pages, filters, orders and columns of listings, and the speed of long ones."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from .http_broker import HttpBroker, unique

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")

LENGTHS = {"alpha": 3, "Beta": 1, "gamma": 2, "delta.1": 0, "delta.2": 0}


@pytest.fixture(scope="module")
def vhost(http_broker: HttpBroker, api: httpx.Client) -> Iterator[str]:
    """A vhost with a few queues of different lengths."""
    name = unique("v")
    api.put(f"vhosts/{name}")
    with http_broker.amqp(vhost=name) as connection:
        channel = connection.channel()
        for queue, length in LENGTHS.items():
            channel.queue_declare(queue, durable=queue.startswith("delta"))
            for _ in range(length):
                channel.basic_publish("", queue, b"m")
        channel.queue_declare("alpha", passive=True)
    yield name
    api.delete(f"vhosts/{name}")


def names(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    rows = answer.json()
    return [row["name"] for row in (rows["items"] if isinstance(rows, dict) else rows)]


def test_listings_are_in_the_order_of_names(api: httpx.Client, vhost: str) -> None:
    assert names(api.get(f"queues/{vhost}")) == sorted(LENGTHS)
    assert [row["vhost"] for row in api.get("queues").json()].count(vhost) == len(LENGTHS)


def test_pages(api: httpx.Client, vhost: str) -> None:
    first = api.get(f"queues/{vhost}?page=1&page_size=2").json()
    assert {name: value for name, value in first.items() if name != "items"} == {
        "page": 1,
        "page_size": 2,
        "page_count": 3,
        "item_count": 2,
        "filtered_count": 5,
        "total_count": 5,
    }
    pages = [names(api.get(f"queues/{vhost}?page={page}&page_size=2")) for page in (1, 2, 3)]
    assert [name for page in pages for name in page] == sorted(LENGTHS)
    assert [len(page) for page in pages] == [2, 2, 1]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("page=x", "bad_request"),
        ("page=1&page_size=x", "bad_request"),
        ("page=0", "invalid_pagination_parameters"),
        ("page=-1", "invalid_pagination_parameters"),
        ("page=1&page_size=501", "invalid_pagination_parameters"),
        ("page=1&page_size=0", "invalid_pagination_parameters"),
        ("page=9&page_size=5", "page_out_of_range"),
        ("page=1&name=[&use_regex=true", "bad_request"),
        (f"page=1&name={'x' * 257}", "bad_request"),
        (f"page={'9' * 5000}", "bad_request"),
    ],
)
def test_pages_that_are_not_there(api: httpx.Client, vhost: str, query: str, error: str) -> None:
    answer = api.get(f"queues/{vhost}?{query}")
    assert (answer.status_code, answer.json()["error"]) == (400, error)


def test_a_page_of_nothing(api: httpx.Client, vhost: str) -> None:
    nothing = api.get(f"queues/{vhost}?page=1&name=nosuch").json()
    assert (nothing["items"], nothing["filtered_count"], nothing["total_count"]) == ([], 0, 5)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name=ta", ["Beta", "delta.1", "delta.2"]),
        ("name=BETA", ["Beta"]),
        ("name=delta.", ["delta.1", "delta.2"]),
        ("name=^[ab]&use_regex=true", ["Beta", "alpha"]),
        ("name=^delta%5C.%5Cd$&use_regex=true", ["delta.1", "delta.2"]),
        ("name=(a|b)eta&use_regex=true", ["Beta"]),
    ],
)
def test_filters_by_name(api: httpx.Client, vhost: str, query: str, expected: list[str]) -> None:
    assert names(api.get(f"queues/{vhost}?page=1&{query}")) == expected


def test_an_expression_that_would_take_for_ever_does_not(api: httpx.Client, vhost: str) -> None:
    api.put(f"queues/{vhost}/{'a' * 200}", json={})
    begun = time.monotonic()
    answer = api.get(f"queues/{vhost}", params={"page": 1, "name": "(a+)+$b", "use_regex": "true"})
    assert answer.status_code in (200, 400)
    assert time.monotonic() - begun < 5
    api.delete(f"queues/{vhost}/{'a' * 200}")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sort=messages", ["Beta", "gamma", "alpha"]),
        ("sort=messages&sort_reverse=true", ["alpha", "gamma", "Beta"]),
        ("sort=message_stats.publish", ["Beta", "gamma", "alpha"]),
        ("sort=message_stats.publish_details.rate", None),
        ("sort=arguments", None),
        ("sort=nosuch.field", None),
        ("sort=__class__", None),
    ],
)
def test_orders(api: httpx.Client, vhost: str, query: str, expected: list[str] | None) -> None:
    found = names(api.get(f"queues/{vhost}?{query}"))
    assert sorted(found) == sorted(LENGTHS)
    if expected is not None:
        assert [name for name in found if LENGTHS[name]] == expected


def test_columns(api: httpx.Client, vhost: str) -> None:
    rows = api.get(f"queues/{vhost}?columns=name,messages,message_stats.publish,nosuch,__class__").json()
    assert rows[1] == {"name": "alpha", "messages": 3, "message_stats": {"publish": 3}}
    assert rows[2] == {"name": "delta.1", "messages": 0}
    assert api.get(f"vhosts/{vhost}?columns=name").json() == {"name": vhost}
    assert api.get("overview?columns=node,object_totals.queues").json().keys() == {"node", "object_totals"}
    assert api.get("whoami?columns=name").json() == {"name": "guest"}
    assert {"name": vhost} in api.get("vhosts?columns=name").json()
    assert api.get("nodes?columns=name").json() == [{"name": "t"}]


def test_without_figures(api: httpx.Client, vhost: str) -> None:
    plain = {"arguments", "auto_delete", "durable", "exclusive", "name", "node", "state", "type", "vhost"}
    assert api.get(f"queues/{vhost}?disable_stats=true").json()[0].keys() == plain
    totals = api.get(f"queues/{vhost}?disable_stats=true&enable_queue_totals=true").json()[1]
    assert totals.keys() == plain | {"messages", "messages_ready", "messages_unacknowledged"}
    assert totals["messages"] == 3


def test_pages_of_everything_that_has_pages(api: httpx.Client) -> None:
    for path in ("queues", "exchanges", "connections", "channels", "vhosts"):
        assert api.get(f"{path}?page=1&page_size=1").json().keys() >= {"items", "page_count"}, path
    # RabbitMQ returns these whole, with any parameters.
    for path in ("bindings?page=1", "consumers?page=1", "users?page=1", "queues?name=x", "queues?page_size=1"):
        assert isinstance(api.get(path).json(), list), path


def test_an_object_declared_over_http_is_in_the_next_listing(api: httpx.Client, vhost: str) -> None:
    for number in range(20):
        name = f"seen.{number}"
        api.put(f"queues/{vhost}/{name}", json={})
        assert name in names(api.get(f"queues/{vhost}"))
        api.delete(f"queues/{vhost}/{name}")
        assert name not in names(api.get(f"queues/{vhost}"))


def test_rates_are_the_growth_of_counters_per_second(http_broker: HttpBroker, api: httpx.Client, vhost: str) -> None:
    with http_broker.amqp(vhost=vhost) as connection:
        channel = connection.channel()
        channel.queue_declare("moving", auto_delete=True)
        api.get(f"queues/{vhost}")
        rate = 0.0
        deadline = time.monotonic() + 10
        while not rate and time.monotonic() < deadline:
            channel.basic_publish("", "moving", b"m")
            time.sleep(0.05)
            [row] = [row for row in api.get(f"queues/{vhost}").json() if row["name"] == "moving"]
            rate = row.get("message_stats", {"publish_details": {"rate": 0.0}})["publish_details"]["rate"]
        assert 1 < rate < 100
        channel.queue_delete("moving")


def test_ten_thousand_queues_are_declared_and_listed_quickly(api: httpx.Client) -> None:
    vhost = unique("v")
    queues = [
        {"name": f"q{number:05d}", "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {}}
        for number in range(10_000)
    ]
    begun = time.monotonic()
    assert api.post("definitions", json={"vhosts": [{"name": vhost}], "queues": queues}).status_code == 204
    declared = time.monotonic()
    rows = api.get(f"queues/{vhost}").json()
    listed = time.monotonic()
    assert [row["name"] for row in rows] == [queue["name"] for queue in queues]
    assert declared - begun < 15 and listed - declared < 5, "seconds, on a busy machine"
    assert len(api.get("definitions").json()["queues"]) >= 10_000
    compressed = api.get(f"queues/{vhost}", headers={"accept-encoding": "gzip"})
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.json() == rows
    plain = api.get(f"queues/{vhost}", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with ThreadPoolExecutor(10) as pool:
        bodies = list(pool.map(lambda _: listing(api, vhost), range(10)))
    assert len(set(bodies)) == 1, "those who ask at the same time get the same"
    assert api.delete(f"vhosts/{vhost}").status_code == 204
    assert api.get(f"queues/{vhost}").status_code == 404


def listing(api: httpx.Client, vhost: str) -> bytes:
    with api.stream("GET", f"queues/{vhost}", headers={"accept-encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    return gzip.decompress(raw)


def test_a_listing_is_one_json_document_for_every_client(api: httpx.Client) -> None:
    answers: list[Any] = [api.get(path).json() for path in ("exchanges", "bindings", "channels", "consumers")]
    assert all(isinstance(answer, list) for answer in answers)
