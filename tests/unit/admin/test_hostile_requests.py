"""Requests that must not be granted, or not read: each harms its sender alone."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from typing import Any

import msgspec
import pytest

from pandomq.admin import application, limits
from pandomq.admin.access.key_login import authorization
from pandomq.admin.responses import send_response
from pandomq.runtime.http_connections import OpenConnection
from tests.unit.admin.one_broker import GUEST, JSON, LOOPBACK, Answer, OneBroker

KEY = b"0123456789abcdef"
LARGE = b'{"a": "' + b"x" * 1_000_000 + b'"}'
NEW_USER = {"password": "pw", "tags": "administrator"}
SPARE = OpenConnection("127.0.0.1", lambda: None)
SPARE.refusal = "it is crowded"


@pytest.fixture(scope="module")
def broker() -> OneBroker:
    return OneBroker(own_key=KEY, http_host_names=("mq.example.com",))


# Reading.


@pytest.mark.proves("R38")
@pytest.mark.parametrize(
    "login", [None, "Basic bm86Ym9keQ==", authorization(b"made up", "PUT", b"/x", b"", 1), "PandoMQ-Key 1:00", "x"]
)
def test_no_body_is_read_before_the_login_is_known_to_be_good(broker: OneBroker, login: str | None) -> None:
    answer = broker.ask("PUT", "/api/cluster/members/n4", LARGE, login=login)
    assert (answer.status, answer.read_bytes) == (401, 0)


def test_the_body_has_to_be_the_one_that_the_proof_is_for(broker: OneBroker) -> None:
    login = broker_login("PUT", "/api/users/mallory", {"password": "a", "tags": ""})
    answer = broker.ask("PUT", "/api/users/mallory", NEW_USER, login=login)
    assert (answer.status, answer.reason) == (
        401,
        "the request body does not match the one that the key's proof was made for",
    )
    assert broker.node.views.user("mallory") is None


def broker_login(method: str, path: str, body: object) -> str:
    return authorization(KEY, method, path.encode(), msgspec.json.encode(body), int(time.time()))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/queues/%2F/q"),
        ("PUT", "/api/users/u"),
        ("POST", "/api/queues/%2F/q/get"),
        ("DELETE", "/api/users/u"),
    ],
)
def test_small_endpoints_accept_small_bodies(broker: OneBroker, method: str, path: str) -> None:
    answer = broker.ask(method, path, LARGE)
    assert (answer.status, answer.read_bytes) == (413, 0)
    unannounced = broker.ask(method, path, LARGE, headers={"content-length": "", "transfer-encoding": "chunked"})
    assert unannounced.status == 413 and unannounced.read_bytes <= limits.SMALL_BODY_BYTES_MAX + 65536


@pytest.mark.proves("R38")
def test_a_large_import_lets_others_run(broker: OneBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is decoded at once than one object: the longest piece that the decoder is given to make values of."""
    sizes: list[int] = []
    decode = msgspec.json.decode

    def watching(octets: Any, **more: Any) -> Any:
        if not more:
            sizes.append(len(bytes(octets)))
        return decode(octets, **more)

    monkeypatch.setattr(msgspec.json, "decode", watching)
    queues = [{"name": f"q{number}", "vhost": "/", "arguments": {}} for number in range(2_000)]
    assert broker.ask("POST", "/api/definitions", {"queues": queues}).status == 204
    assert broker.node.views.queue("/", "q1999") is not None
    assert max(sizes) < 100


# Logins.


FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:8000"},
    {"origin": "http://[::1"},
    {"origin": "https://mq.example.com:8443"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"host": "evil.example:15672"},
    {"host": "evil.example:15672", "origin": "http://evil.example:15672", "sec-fetch-site": "same-origin"},
    {"host": "127.0.0.1.evil.example"},
    {"host": ""},
]


@pytest.mark.proves("R38")
@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/api/users/mallory"), ("POST", "/api/definitions"), ("DELETE", "/api/users/guest?force=true")],
)
def test_no_change_is_made_for_a_foreign_page(
    broker: OneBroker, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = broker.ask(method, path, {"users": [{"name": "mallory", **NEW_USER}], **NEW_USER}, headers=headers)
    assert (answer.status, answer.read_bytes) == (403, 0)
    assert broker.node.views.user("mallory") is None and broker.node.views.user("guest") is not None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:15672", "origin": "http://localhost:15672", "sec-fetch-site": "same-origin"},
        {"host": "MQ.example.com", "origin": "https://mq.example.com", "sec-fetch-site": "same-origin"},
        {"host": "127.0.0.1:15672", "origin": "https://mq.example.com"},
        {"host": "[::1]:15672", "origin": "http://[::1]:15672"},
        {"host": "10.1.2.3", "origin": "http://10.1.2.3:80", "sec-fetch-site": "none"},
    ],
)
def test_changes_are_made_for_pages_of_this_broker_and_for_programs(broker: OneBroker, headers: dict[str, str]) -> None:
    assert broker.ask("PUT", "/api/queues/%2F/own", {}, headers=headers).status in (201, 204)


@pytest.mark.parametrize("headers", FOREIGN)
def test_the_aliveness_test_is_a_change(broker: OneBroker, headers: dict[str, str]) -> None:
    """It declares a queue and publishes a message."""
    assert broker.ask("GET", "/api/aliveness-test/%2F", headers=headers).status == 403
    assert broker.node.views.queue("/", "aliveness-test") is None


def test_the_aliveness_test_is_made_for_programs() -> None:
    assert OneBroker().ask("GET", "/api/aliveness-test/%2F").status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/exchanges/%2F/amq.default/publish", {"payload": "*" * 5_000_000, "payload_encoding": "base64"}),
        ("/api/exchanges/%2F/amq.default/publish", {"payload": "", "payload_encoding": "*" * 100_000}),
        ("/api/exchanges/%2F/amq.default/publish", {"properties": {"headers": ["*" * 100_000]}}),
        ("/api/queues/%2F/q/get", {"count": {"*" * 50_000: [1]}}),
        ("/api/queues/%2F/q/get", {"ackmode": "*" * 50_000}),
    ],
)
def test_a_refusal_quotes_the_beginning_of_a_value(broker: OneBroker, path: str, body: dict[str, Any]) -> None:
    complete = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    complete |= {"properties": {}, "routing_key": "q", "payload": "", "payload_encoding": "string"}
    answer = broker.ask("POST", path, {**complete, **body})
    assert answer.status == 400 and b"*" * 20 in answer.body
    assert len(answer.body) < limits.REASON_CHARS_MAX + 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_a_body_that_is_not_declared_as_json_is_refused(broker: OneBroker, kind: str) -> None:
    answer = broker.ask("POST", "/api/definitions", LARGE, headers={"content-type": kind})
    assert (answer.status, answer.read_bytes) == (415, 0)


def test_a_request_without_a_body_needs_no_content_type(broker: OneBroker) -> None:
    assert broker.ask("PUT", "/api/queues/%2F/own", headers={"content-type": ""}).status in (201, 204)
    kind = {"content-type": "application/json; charset=utf-8"}
    assert broker.ask("PUT", "/api/queues/%2F/own", {}, headers=kind).status in (201, 204)


# Requests in progress.


def test_a_user_has_a_limited_number_of_requests_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = OneBroker(http_requests_per_user_max=3)
    assert broker.ask("PUT", "/api/users/ann", NEW_USER).status == 201
    ann = "Basic " + base64.b64encode(b"ann:pw").decode()
    written = asyncio.Event()

    async def when_allowed(response: Any, send: Any) -> None:
        await written.wait()
        await send_response(response, send)

    monkeypatch.setattr(application, "send_response", when_allowed)

    async def run() -> list[Answer]:
        asking = [
            asyncio.create_task(broker._ask("GET", "/api/whoami", b"", {**JSON, "authorization": login}, LOOPBACK))
            for login in [GUEST] * 5 + [ann]
        ]
        await asyncio.sleep(0.2)
        written.set()
        return await asyncio.gather(*asking)

    answers = asyncio.run(run())
    assert sorted(answer.status for answer in answers) == [200] * 4 + [429] * 2
    assert answers[-1].status == 200
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.reason == (
        "user 'guest' has 3 requests in progress, which is the limit (limits.http_requests_per_user_max): wait for an "
        "answer before the next request"
    )
    assert broker.ask("GET", "/api/whoami").status == 200


def test_a_connection_beyond_the_limits_is_for_health_checks(broker: OneBroker) -> None:
    crowded = {
        path: b"it is crowded" in broker.ask("GET", path, connection=SPARE).body
        for path in ("/healthz", "/readyz", "/api/health/root", "/metrics", "/api/whoami", "/api/queues")
    }
    assert list(crowded.values()) == [False] * 4 + [True] * 2
    assert broker.ask("GET", "/api/whoami", connection=SPARE).status == 503


# Sources of requests.


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("192.0.2.7", {}, 401),
        ("127.0.0.1", {"x-forwarded-for": "192.0.2.7"}, 401),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, 401),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1, 192.0.2.7"}, 401),
        ("127.0.0.1", {"forwarded": "for=127.0.0.1"}, 401),
        ("127.0.0.1", {"via": "1.1 proxy"}, 401),
        ("192.0.2.7", {"x-forwarded-for": "127.0.0.1"}, 401),
    ],
)
def test_the_loopback_is_where_the_socket_is_and_no_proxy(client: str, headers: dict[str, str], status: int) -> None:
    broker = OneBroker()
    assert broker.ask("GET", "/api/whoami", client=(client, 50000), headers=headers).status == status


@pytest.mark.parametrize(
    ("client", "headers", "address"),
    [
        ("10.0.0.1", {"x-forwarded-for": "198.51.100.1, 192.0.2.7"}, "192.0.2.7"),
        ("10.0.0.1", {"x-forwarded-for": "192.0.2.7:1234, 10.0.0.9"}, "192.0.2.7"),
        ("10.0.0.1", {"x-forwarded-for": "nonsense, [2001:db8::7]:80"}, "2001:db8::7"),
        ("10.0.0.1", {"x-forwarded-for": "nonsense"}, "10.0.0.1"),
        ("203.0.113.1", {"x-forwarded-for": "192.0.2.7"}, "203.0.113.1"),
    ],
)
def test_only_a_trusted_proxy_may_name_the_address_of_a_client(
    client: str, headers: dict[str, str], address: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker = OneBroker(trusted_proxies=("10.0.0.0/24",))
    wrong = "Basic " + base64.b64encode(b"ann:wrong").decode()
    assert broker.ask("GET", "/api/whoami", client=(client, 50000), headers=headers, login=wrong).status == 401
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"login from {f'[{address}]' if ':' in address else address}:")


# Failures.


def test_an_exception_ends_its_request_with_500_and_is_logged_once(
    broker: OneBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(call: Any) -> Any:
        raise AttributeError("a bug")

    router = OneBroker().application._router
    endpoint, _ = router.find(b"/api/whoami")
    monkeypatch.setattr(broker.application, "_router", router)
    endpoint.actions["GET"] = endpoint.actions["GET"]._replace(handler=broken)  # type: ignore[index]
    with caplog.at_level(logging.ERROR):
        answer = broker.ask("GET", "/api/whoami")
    assert (answer.status, answer.reason) == (
        500,
        "the broker failed to process the request: its log has the traceback",
    )
    [record] = caplog.records
    assert record.getMessage() == "HTTP request failed with an unexpected exception: GET /api/whoami"
    assert record.exc_info is not None and record.exc_info[0] is AttributeError
    assert broker.ask("GET", "/api/overview").status == 200


WRONG = [
    ("users", {"name": "u", "tags": "", "limits": ["max-connections", 5]}, "user 'u': limits is not an object"),
    ("users", {"name": "u", "limits": {"max-connections": "5"}},
     "user 'u': limits: max-connections is not a whole number"),
    ("users", {"name": "u", "limits": {"max-connections": True}},
     "user 'u': limits: max-connections is not a whole number"),
    ("users", {"name": "u", "tags": 5}, "user 'u': tags is neither a list of strings nor a string"),
    ("users", {"name": "u", "password_hash": 5}, "user 'u': password_hash is not a string"),
    ("users", {"name": 5}, "user 5: name is not a string"),
    ("users", 5, "users: expected a list of objects"),
    ("vhosts", {"name": ["v"]}, "vhost ['v']: name is not a string"),
    ("vhosts", {"name": "v", "description": 5}, "vhost 'v': description is not a string"),
    ("permissions", {"user": "guest", "vhost": "/", "configure": 1, "write": "", "read": ""},
     "permission 'guest': configure is not a string"),
    ("topic_permissions", {"user": "guest", "vhost": "/", "exchange": {}, "write": "", "read": ""},
     "topic_permission 'guest': exchange is not a string"),
    ("parameters", {"component": "vhost-limits", "vhost": "/", "name": "limits", "value": []},
     "parameter 'limits': value is not an object"),
    ("parameters", {"component": "vhost-limits", "vhost": "/", "name": "limits", "value": {"max-queues": [1]}},
     "parameter 'limits': value: max-queues is not a whole number"),
    ("policies", {"vhost": "/", "name": "p", "pattern": "", "definition": [1]},
     "policy 'p': definition is not an object"),
    ("policies", {"vhost": "/", "name": "p", "pattern": "", "definition": {}, "priority": 1.5},
     "policy 'p': priority is not a whole number"),
    ("exchanges", {"vhost": "/", "name": "e", "type": 5}, "exchange 'e': type is not a string"),
    ("queues", {"vhost": 5, "name": "q"}, "queue 'q': vhost is not a string"),
    ("queues", {"vhost": "/", "name": "q", "arguments": 5}, "queue 'q': ['not_a_table', 5]"),
    ("queues", {"vhost": "/", "name": "q", "durable": 1}, "queue 'q': durable is not a boolean"),
    ("bindings", {"vhost": "/", "source": "e", "destination": None}, "binding 'e': destination is missing"),
]  # fmt: skip


@pytest.mark.proves("R38")
@pytest.mark.parametrize(("section", "item", "reason"), WRONG)
def test_definitions_are_checked_before_anything_changes(section: str, item: object, reason: str) -> None:
    broker = OneBroker()
    document: dict[str, list[object]] = {
        "users": [{"name": "first", "password_hash": "", "tags": ""}],
        "vhosts": [{"name": "first"}],
        "queues": [{"name": "first", "vhost": "/"}],
    }
    document[section] = [*document.get(section, []), item]
    answer = broker.ask("POST", "/api/definitions", document)
    assert (answer.status, answer.reason) == (400, reason)
    assert broker.node.views.user("first") is None and not broker.node.views.has_vhost("first")
    assert broker.node.views.queue("/", "first") is None


def test_empty_limits_exported_by_rabbitmq_are_accepted() -> None:
    broker = OneBroker()
    nothing: tuple[Any, ...] = ({}, [], None)
    users = [{"name": "u", "password_hash": "", "tags": [], "limits": limit} for limit in nothing]
    assert broker.ask("POST", "/api/definitions", {"users": users}).status == 204


# Administrators.


def test_the_last_administrator_stays_unless_it_is_forced_to_go() -> None:
    broker = OneBroker(own_key=KEY)
    demoted = {"password": "guest", "tags": "management"}
    definitions = {"users": [{"name": "guest", "password_hash": "", "tags": "administrator"}]}
    for method, path, body in (
        ("DELETE", "/api/users/guest", b""),
        ("POST", "/api/users/bulk-delete", {"users": ["guest"]}),
        ("PUT", "/api/users/guest", demoted),
        ("PUT", "/api/users/guest", {"tags": "administrator"}),
        ("POST", "/api/definitions", definitions),
    ):
        answer = broker.ask(method, path, body)
        assert answer.status == 400 and "without 'guest', no administrator would be left" in answer.reason
    assert broker.ask("PUT", "/api/users/ann", NEW_USER).status == 201
    assert broker.ask("PUT", "/api/users/guest", demoted).status == 204


def test_a_request_with_the_key_creates_an_administrator_when_there_is_none() -> None:
    broker = OneBroker(own_key=KEY)
    assert broker.ask("DELETE", "/api/users/guest?force=true").status == 204
    assert broker.ask("GET", "/api/whoami").status == 401
    assert broker.by_key(b"another key of some length", "PUT", "/api/users/ann", NEW_USER).status == 401
    assert broker.by_key(KEY, "PUT", "/api/users/ann", NEW_USER).status == 201
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    assert broker.by_key(KEY, "PUT", "/api/permissions/%2F/ann", rights).status == 201
    ann = "Basic " + base64.b64encode(b"ann:pw").decode()
    assert broker.ask("GET", "/api/users", login=ann).status == 200
    for path in ("/api/overview", "/api/queues", "/api/definitions"):
        assert broker.by_key(KEY, "GET", path).status == 401
