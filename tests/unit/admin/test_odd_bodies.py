"""Every change of the API with every field of every odd value: refused or granted, and never an error of the broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from pandomq.admin.routes import _ROUTES
from tests.unit.admin.one_broker import OneBroker

BODIES: Final[dict[str, dict[str, Any]]] = {
    "api/queues/{vhost}/{queue}": {"durable": True, "auto_delete": False, "arguments": {"x-max-length": 5}},
    "api/queues/{vhost}/{queue}/get": {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 5},
    "api/exchanges/{vhost}/{exchange}": {
        "type": "topic", "durable": True, "auto_delete": False, "internal": False,
        "arguments": {"alternate-exchange": ""},
    },
    "api/exchanges/{vhost}/{exchange}/publish": {
        "properties": {"headers": {"a": 1}, "delivery_mode": 2, "timestamp": 5, "priority": 1, "expiration": "5"},
        "routing_key": "own", "payload": "x", "payload_encoding": "string",
    },
    "api/bindings/{vhost}/e/{source}/q/{queue}": {"routing_key": "a", "arguments": {"x-match": "all"}},
    "api/bindings/{vhost}/e/{source}/e/{destination}": {"routing_key": "a", "arguments": {}},
    "api/vhosts/{vhost}": {"description": "", "tags": [], "tracing": True, "trace_sample": 0.5},
    "api/users/{user}": {"password": "", "password_hash": "", "hashing_algorithm": "scrypt", "tags": ""},
    "api/users/bulk-delete": {"users": ["nobody"]},
    "api/permissions/{vhost}/{user}": {"configure": "", "write": "", "read": ""},
    "api/topic-permissions/{vhost}/{user}": {"exchange": "amq.topic", "write": "", "read": ""},
    "api/policies/{vhost}/{policy}": {
        "pattern": ".*", "definition": {"max-length": 5, "dead-letter-exchange": "", "expires": 10, "ha-params": 1},
        "priority": 1, "apply-to": "queues",
    },
    "api/operator-policies/{vhost}/{policy}": {
        "pattern": ".*", "definition": {"max-length": 5}, "priority": 1, "apply-to": "queues",
    },
    "api/vhost-limits/{vhost}/{name}": {"value": 5},
    "api/user-limits/{user}/{name}": {"value": 5},
    "api/definitions": {
        "users": [{"name": "x", "password_hash": "", "tags": "", "limits": {"max-connections": 5}}],
        "vhosts": [{"name": "x", "description": "", "tags": []}],
        "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
        "topic_permissions": [{"user": "guest", "vhost": "/", "exchange": "x", "write": "", "read": ""}],
        "parameters": [{"component": "vhost-limits", "vhost": "/", "name": "limits", "value": {"max-queues": 500}}],
        "policies": [{"vhost": "/", "name": "p", "pattern": "x", "definition": {"max-length": 5}, "priority": 1}],
        "exchanges": [{"vhost": "/", "name": "x", "type": "topic", "durable": True, "arguments": {}}],
        "queues": [{"vhost": "/", "name": "x", "durable": True, "auto_delete": False, "arguments": {}}],
        "bindings": [{"vhost": "/", "source": "amq.topic", "destination": "own", "destination_type": "queue",
                      "routing_key": "a", "arguments": {}}],
    },
    "api/cluster/members/{name}": {"address": "h:5672"},
    "api/cluster/promote": {"name": "n1", "force": True, "dead": []},
}  # fmt: skip
NAMES: Final = {
    "vhost": "%2F", "queue": "own", "exchange": "own", "source": "amq.topic", "destination": "amq.direct",
    "user": "guest", "policy": "p", "name": "max-connections",
}  # fmt: skip
DEEP: Final[Any] = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
ODD: Final[list[Any]] = [
    None, True, 0, -1, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -1e308, "", "\0", "x" * 300, "é" * 128,
    "\ufffe", "(", "[a-", "(a*)*b", "true", "5", [], [1], [[]], ["a", None], {}, {"": ""}, {"a": {"b": [1, None]}},
    {"x" * 300: 1}, DEEP,
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a body, the body itself aside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def with_odd(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = with_odd(value[path[0]], path[1:], odd)
    return changed


def test_every_change_with_a_body_is_here() -> None:
    empty = {"api/connections/{connection}", "api/definitions/{vhost}"}
    changes = {template for template, actions in _ROUTES.items() if {"PUT", "POST"} & actions.keys()}
    assert changes - empty == set(BODIES)


@pytest.mark.parametrize("template", BODIES)
def test_no_odd_value_is_an_error_of_the_broker(template: str, caplog: pytest.LogCaptureFixture) -> None:
    broker = OneBroker()
    path = "/" + "/".join(NAMES.get(part[1:-1], part) if part[0] == "{" else part for part in template.split("/"))
    method = "PUT" if "PUT" in _ROUTES[template] else "POST"
    body = BODIES[template]
    broker.ask("PUT", "/api/queues/%2F/own", {})
    for place in places(body):
        for odd in ODD:
            answer = broker.ask(method, path, encoded(with_odd(body, place, odd)))
            assert answer.status in (200, 201, 204, 400, 401, 404, 413, 503), (place, odd, answer)
    assert broker.ask("GET", "/api/overview").status == 200
    assert [record for record in caplog.records if record.exc_info or record.name == "asyncio"] == []


def encoded(body: Any) -> bytes:
    """By an encoder that knows integers of any size."""
    return json.dumps(body).encode()


ODD_TEXTS: Final = ["", "0", "-1", "%C2%B2", "9" * 30, "%00", "(", "(a*)*b", "a.b.c", "true", "%FF", "x" * 5000]


@pytest.mark.parametrize("template", [template for template, actions in _ROUTES.items() if "GET" in actions])
def test_no_odd_query_or_name_is_an_error_of_the_broker(template: str, caplog: pytest.LogCaptureFixture) -> None:
    broker = OneBroker()
    parts = template.split("/")
    path = "/" + "/".join(NAMES.get(part[1:-1], part) if part[0] == "{" else part for part in parts)
    keys = ("page", "page_size", "name", "use_regex", "sort", "sort_reverse", "columns", "disable_stats")
    queries = [f"{key}={odd}" for key in keys for odd in ODD_TEXTS]
    queries += [f"page=1&{query}" for query in queries] + [f"page=1&use_regex=true&name={odd}" for odd in ODD_TEXTS]
    for query in queries:
        answer = broker.ask("GET", f"{path}?{query}")
        assert answer.status in (200, 400, 401, 404, 503), (query, answer)
    for odd in ODD_TEXTS:
        odd_path = "/" + "/".join(odd if part[0] == "{" else part for part in parts)
        assert broker.ask("GET", odd_path).status in (200, 400, 401, 404, 503), odd_path
        if "DELETE" in _ROUTES[template]:
            assert broker.ask("DELETE", odd_path).status in (204, 400, 401, 404, 405, 503), odd_path
    assert [record for record in caplog.records if record.exc_info or record.name == "asyncio"] == []


def test_the_harness_sees_an_error_in_a_step(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        asyncio.get_running_loop().call_soon(lambda: [][0])
        await asyncio.sleep(0)

    asyncio.run(fail())
    assert [record.name for record in caplog.records] == ["asyncio"]
