"""Users, vhosts, permissions, policies and limits over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker, ProbableAccessDeniedError

from .http_broker import HttpBroker, unique
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")

SHA256_OF_TEST12 = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
"""RabbitMQ's own example of a hash; the password is in its documentation."""
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture
def user(api: httpx.Client) -> Iterator[str]:
    name = unique("u")
    assert api.put(f"users/{name}", json={"password": "pw", "tags": "management"}).status_code == 201
    yield name
    api.delete(f"users/{name}")


@pytest.fixture
def vhost(api: httpx.Client) -> Iterator[str]:
    name = unique("v")
    assert api.put(f"vhosts/{name}").status_code == 201
    yield name
    api.delete(f"vhosts/{name}")


# Users.


def test_a_user_is_made_changed_and_deleted(api: httpx.Client) -> None:
    name = unique("u")
    assert api.put(f"users/{name}", json={"password": "pw", "tags": "management, policymaker"}).status_code == 201
    shown = api.get(f"users/{name}").json()
    assert shown["tags"] == ["management", "policymaker"]
    assert (shown["name"], shown["limits"], shown["hashing_algorithm"]) == (name, {}, "scrypt")
    assert "pw" not in shown["password_hash"]
    assert api.put(f"users/{name}", json={"password": "new", "tags": ["monitoring"]}).status_code == 204
    assert api.get(f"users/{name}").json()["tags"] == ["monitoring"]
    assert name in [row["name"] for row in api.get("users").json()]
    assert name in [row["name"] for row in api.get("users/without-permissions").json()]
    assert api.delete(f"users/{name}").status_code == 204
    assert api.delete(f"users/{name}").status_code == 404
    assert api.get(f"users/{name}").status_code == 404


def test_a_new_password_counts_at_once(http_broker: HttpBroker, api: httpx.Client, user: str) -> None:
    old = http_broker.client(user, "pw")
    assert old.get("whoami").json() == {"name": user, "tags": ["management"]}
    api.put(f"users/{user}", json={"password": "other", "tags": "management"})
    assert old.get("whoami").json() == {"error": "not_authorized", "reason": "Login failed"}
    assert http_broker.client(user, "other").get("whoami").status_code == 200


def test_hashes_of_rabbitmq_are_taken(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique("u")
    body = {"password_hash": SHA256_OF_TEST12, "tags": "management"}
    assert api.put(f"users/{name}", json=body).status_code == 201
    assert api.get(f"users/{name}").json()["password_hash"] == SHA256_OF_TEST12
    assert http_broker.client(name, "test12").get("whoami").status_code == 200
    assert http_broker.client(name, "test13").get("whoami").status_code == 401
    api.delete(f"users/{name}")


@pytest.mark.parametrize("body", [{"tags": ""}, {"password_hash": "", "tags": ""}, {"password": "", "tags": ""}])
def test_a_user_without_a_password_cannot_log_in(
    http_broker: HttpBroker, api: httpx.Client, body: dict[str, str]
) -> None:
    name = unique("u")
    assert api.put(f"users/{name}", json={**body, "tags": "management"}).status_code == 201
    for password in ("", "x"):
        assert http_broker.client(name, password).get("whoami").status_code == 401
    api.delete(f"users/{name}")


@pytest.mark.parametrize(
    "body",
    [
        {"password": "pw"},
        {"password": 5, "tags": ""},
        {"password": "pw", "tags": 5},
        {"password": "pw", "tags": [5]},
        {"password": "p" * 100_000, "tags": ""},
        {"password_hash": "not base64!", "tags": ""},
        {"password_hash": SHA256_OF_TEST12, "hashing_algorithm": "nosuch", "tags": ""},
    ],
)
def test_users_that_cannot_be_made(api: httpx.Client, body: dict[str, Any]) -> None:
    answer = api.put("users/never", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    assert api.get("users/never").status_code == 404


def test_deleting_many_users(api: httpx.Client) -> None:
    names = [unique("u") for _ in range(3)]
    for name in names:
        api.put(f"users/{name}", json={"tags": ""})
    missing = api.post("users/bulk-delete", json={"users": [*names, "nosuch"]})
    assert missing.json() == {"error": "bad_request", "reason": ["no_such_user", "nosuch"]}
    assert api.post("users/bulk-delete", json={"users": names}).status_code == 204
    assert not set(names) & {row["name"] for row in api.get("users").json()}


# Vhosts.


def test_a_vhost_is_made_and_its_maker_may_use_it(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique("v")
    assert api.put(f"vhosts/{name}", json={"description": "mine", "tags": "a,b"}).status_code == 201
    assert api.put(f"vhosts/{name}", json={"description": "other", "tags": ["c"]}).status_code == 204
    shown = api.get(f"vhosts/{name}").json()
    assert (shown["name"], shown["description"], shown["tags"]) == (name, "other", ["c"])
    assert shown["metadata"] == {"description": "other", "tags": ["c"]}
    assert (shown["tracing"], shown["cluster_state"]) == (False, {"t": "running"})
    assert api.get(f"permissions/{name}/guest").json() == {"user": "guest", "vhost": name, **EVERYTHING}
    with http_broker.amqp(vhost=name) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"m")
        channel.queue_declare("q", passive=True)
        assert api.get(f"vhosts/{name}").json()["messages_ready"] == 1
        assert [row["vhost"] for row in api.get(f"vhosts/{name}/connections").json()] == [name]
        assert [row["vhost"] for row in api.get(f"vhosts/{name}/channels").json()] == [name]
        assert api.delete(f"vhosts/{name}").status_code == 204
        with pytest.raises(ConnectionClosedByBroker, match="CONNECTION_FORCED"):
            connection.process_data_events(time_limit=10)
    assert api.delete(f"vhosts/{name}").status_code == 404
    for path in (f"vhosts/{name}", f"queues/{name}", f"queues/{name}/q", f"vhosts/{name}/permissions"):
        assert api.get(path).status_code == 404


# Permissions.


def test_permissions_are_given_and_taken(http_broker: HttpBroker, api: httpx.Client, user: str) -> None:
    path = f"permissions/%2F/{user}"
    with pytest.raises(ProbableAccessDeniedError), http_broker.amqp(user, "pw"):
        pass
    patterns = {"configure": "^mine", "write": "^mine", "read": ""}
    assert api.put(path, json=patterns).status_code == 201
    assert api.put(path, json=patterns).status_code == 204
    row = {"user": user, "vhost": "/", **patterns}
    assert api.get(path).json() == row
    for listing in ("permissions", f"users/{user}/permissions", "vhosts/%2F/permissions"):
        assert row in api.get(listing).json(), listing
    with http_broker.amqp(user, "pw") as connection:
        connection.channel().queue_declare("mine.q", exclusive=True)
        with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
            connection.channel().queue_declare("other.q", exclusive=True)
        assert api.put(path, json={**patterns, "configure": "^other"}).status_code == 204
        connection.channel().queue_declare("other.q", exclusive=True)
    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 404
    assert api.get(path).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("permissions/%2F/guest", {"configure": ".*", "write": ".*"}, "[{key_missing,read}]"),
        ("permissions/%2F/nosuch", EVERYTHING, "vhost_or_user_not_found"),
        ("permissions/nosuch/guest", EVERYTHING, "vhost_or_user_not_found"),
        ("permissions/%2F/guest", {**EVERYTHING, "read": 5}, "read is not a string"),
        ("topic-permissions/%2F/guest", {"write": "", "read": ""}, "[{key_missing,exchange}]"),
        ("topic-permissions/%2F/nosuch", {"exchange": "x", "write": "", "read": ""}, "vhost_or_user_not_found"),
    ],
)
def test_permissions_that_cannot_be_given(api: httpx.Client, path: str, body: dict[str, Any], reason: str) -> None:
    answer = api.put(path, json=body)
    assert answer.json() == {"error": "bad_request", "reason": reason}


def test_a_malformed_pattern_is_refused(api: httpx.Client) -> None:
    answer = api.put("permissions/%2F/guest", json={**EVERYTHING, "configure": "["})
    assert answer.status_code == 400
    assert "missing terminating ]" in answer.json()["reason"]


def test_topic_permissions(http_broker: HttpBroker, api: httpx.Client, user: str) -> None:
    api.put(f"permissions/%2F/{user}", json=EVERYTHING)
    path = f"topic-permissions/%2F/{user}"
    assert api.get(path).status_code == 404
    assert api.put(path, json={"exchange": "amq.topic", "write": "^ok", "read": ".*"}).status_code == 201
    assert api.put(path, json={"exchange": "amq.topic", "write": "^ok", "read": "^ok"}).status_code == 204
    assert api.put(path, json={"exchange": "x", "write": "", "read": ""}).status_code == 201
    row = {"user": user, "vhost": "/", "exchange": "amq.topic", "write": "^ok", "read": "^ok"}
    assert len(api.get(path).json()) == 2
    for listing in (path, "topic-permissions", f"users/{user}/topic-permissions", "vhosts/%2F/topic-permissions"):
        assert row in api.get(listing).json(), listing
    with http_broker.amqp(user, "pw") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("amq.topic", "ok.1", b"m")
        with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
            channel.basic_publish("amq.topic", "no.1", b"m")
    assert api.delete(f"{path}/x").status_code == 204
    assert api.get(path).json() == [row]
    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 404


# Policies.


@pytest.mark.parametrize("kind", ["policies", "operator-policies"])
def test_a_policy_takes_effect_at_once(api: httpx.Client, vhost: str, kind: str) -> None:
    api.put(f"queues/{vhost}/q1", json={})
    path = f"{kind}/{vhost}/short"
    body = {"pattern": "^q1", "definition": {"max-length": 7}, "priority": 3, "apply-to": "queues"}
    assert api.put(path, json=body).status_code == 201
    assert api.put(path, json={**body, "definition": {"max-length": 5}}).status_code == 204
    row = {"vhost": vhost, "name": "short", **body, "definition": {"max-length": 5}}
    assert api.get(path).json() == row
    assert api.get(f"{kind}/{vhost}").json() == [row]
    assert row in api.get(kind).json()
    shown = api.get(f"queues/{vhost}/q1").json()
    assert shown["policy" if kind == "policies" else "operator_policy"] == "short"
    assert shown["effective_policy_definition"] == {"max-length": 5}
    [listed] = api.get(f"queues/{vhost}").json()
    assert listed["effective_policy_definition"] == {"max-length": 5}
    for _ in range(6):
        body = {"properties": {}, "routing_key": "q1", "payload": "m", "payload_encoding": "string"}
        api.post(f"exchanges/{vhost}/amq.default/publish", json=body)
    assert api.get(f"queues/{vhost}/q1").json()["messages"] == 5
    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 404
    assert api.get(f"queues/{vhost}/q1").json()["effective_policy_definition"] == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"pattern": "^a"}, "{key_missing,definition}"),
        ({"definition": {"max-length": 7}}, "{key_missing,pattern}"),
        ({"pattern": "^a", "definition": {}}, "no policy provided"),
        ({"pattern": "^a", "definition": {"nosuch": 7}}, "are not recognised policy settings"),
        ({"pattern": "^a", "definition": {"max-length": -7}}, "-7 is not a valid maximum length"),
        ({"pattern": "[", "definition": {"max-length": 7}}, "pattern should be regular expression but is invalid"),
        ({"pattern": 5, "definition": {"max-length": 7}}, "pattern is not a string"),
        ({"pattern": "^a", "definition": {"max-length": 7}, "apply-to": "nosuch"}, "apply-to 'nosuch' unrecognised"),
        ({"pattern": "^a", "definition": {"max-length": 7}, "priority": "x"}, "priority should be a number"),
        ({"pattern": "^a", "definition": {"max-length": 7}, "priority": True}, "priority should be a number"),
    ],
)
def test_policies_that_cannot_be_set(api: httpx.Client, vhost: str, body: dict[str, Any], words: str) -> None:
    answer = api.put(f"policies/{vhost}/never", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    assert words in answer.json()["reason"]
    assert api.get(f"policies/{vhost}/never").status_code == 404


def test_an_exchange_shows_its_policy(api: httpx.Client, vhost: str) -> None:
    body = {"pattern": "^amq.direct", "definition": {"alternate-exchange": "amq.fanout"}, "apply-to": "exchanges"}
    api.put(f"policies/{vhost}/away", json=body)
    assert api.get(f"exchanges/{vhost}/amq.direct").json()["policy"] == "away"


# Limits.


def test_limits_of_a_vhost(api: httpx.Client, vhost: str) -> None:
    assert api.get(f"vhost-limits/{vhost}").json() == []
    assert api.put(f"vhost-limits/{vhost}/max-queues", json={"value": 1}).status_code == 204
    assert api.put(f"vhost-limits/{vhost}/max-connections", json={"value": -1}).status_code == 204
    row = {"vhost": vhost, "value": {"max-queues": 1, "max-connections": -1}}
    assert api.get(f"vhost-limits/{vhost}").json() == [row]
    assert row in api.get("vhost-limits").json()
    assert api.put(f"queues/{vhost}/one", json={}).status_code == 201
    refused = api.put(f"queues/{vhost}/two", json={})
    assert refused.json() == {
        "error": "bad_request",
        "reason": f"cannot declare queue 'two': queue limit in vhost '{vhost}' (1) is reached",
    }
    assert api.delete(f"vhost-limits/{vhost}/max-queues").status_code == 204
    assert api.put(f"queues/{vhost}/two", json={}).status_code == 201
    for name, body in (("nosuch", {"value": 1}), ("max-queues", {"value": "x"}), ("max-queues", {})):
        assert api.put(f"vhost-limits/{vhost}/{name}", json=body).status_code == 400
    assert api.put("vhost-limits/nosuch/max-queues", json={"value": 1}).status_code == 404
    assert api.get("vhost-limits/nosuch").status_code == 404


def test_limits_of_a_user(http_broker: HttpBroker, api: httpx.Client, user: str) -> None:
    api.put(f"permissions/%2F/{user}", json=EVERYTHING)
    assert api.put(f"user-limits/{user}/max-connections", json={"value": 1}).status_code == 204
    row = {"user": user, "value": {"max-connections": 1}}
    assert api.get(f"user-limits/{user}").json() == [row]
    assert row in api.get("user-limits").json()
    assert api.get(f"users/{user}").json()["limits"] == {"max-connections": 1}
    with http_broker.amqp(user, "pw"):
        with pytest.raises(pika.exceptions.AMQPConnectionError), http_broker.amqp(user, "pw"):
            pass
        # A request over HTTP is no connection.
        assert http_broker.client(user, "pw").get("queues/%2F/nosuch").status_code == 404
    assert api.delete(f"user-limits/{user}/max-connections").status_code == 204
    assert api.get(f"user-limits/{user}").json() == []
    assert api.put("user-limits/nosuch/max-connections", json={"value": 1}).json() == {
        "error": "bad_request",
        "reason": ["no_such_user", "nosuch"],
    }


def test_deleting_a_user_ends_its_connections(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique("u")
    api.put(f"users/{name}", json={"password": "pw", "tags": ""})
    api.put(f"permissions/%2F/{name}", json=EVERYTHING)
    with http_broker.amqp(name, "pw") as connection:
        api.delete(f"users/{name}")
        with pytest.raises(ConnectionClosedByBroker):
            connection.process_data_events(time_limit=10)
    wait_until(lambda: name not in [row["user"] for row in api.get("connections").json()])


# Definitions.


def test_definitions_go_out_and_come_in(api: httpx.Client, vhost: str, user: str) -> None:
    api.put(f"permissions/{vhost}/{user}", json=EVERYTHING)
    api.put(f"topic-permissions/{vhost}/{user}", json={"exchange": "x", "write": "a", "read": "b"})
    api.put(f"exchanges/{vhost}/x", json={"type": "topic", "durable": True, "arguments": {"alternate-exchange": "y"}})
    api.put(f"queues/{vhost}/q", json={"durable": True, "arguments": {"x-max-length": 5}})
    api.post(f"bindings/{vhost}/e/x/q/q", json={"routing_key": "a.#", "arguments": {"k": 1}})
    api.post(f"bindings/{vhost}/e/x/e/amq.fanout", json={"routing_key": "b"})
    api.put(f"policies/{vhost}/p", json={"pattern": "^q", "definition": {"max-length": 7}})
    api.put(f"operator-policies/{vhost}/o", json={"pattern": "^q", "definition": {"max-length": 4}})
    api.put(f"vhost-limits/{vhost}/max-queues", json={"value": 100})
    before = api.get("definitions").json()
    inside = api.get(f"definitions/{vhost}").json()
    assert [len(inside[section]) for section in ("queues", "exchanges", "bindings", "policies", "parameters")] == [
        1,
        1,
        2,
        1,
        2,
    ]
    api.delete(f"vhosts/{vhost}")
    api.delete(f"users/{user}")
    assert api.post("definitions", json=before).status_code == 204
    after = api.get("definitions").json()
    for section in before:
        if isinstance(before[section], list):
            assert sorted(map(str, after[section])) == sorted(map(str, before[section])), section
    other = unique("v")
    api.put(f"vhosts/{other}")
    assert api.post(f"definitions/{other}", json=inside).status_code == 204
    assert api.get(f"definitions/{other}").json() == inside
    api.delete(f"vhosts/{other}")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"queues": 5}, "queues: expected a list"),
        ({"queues": [5]}, "queues: expected a list of objects"),
        ({"queues": [{"vhost": "/"}]}, "name is missing"),
        ({"queues": [{"name": "q", "vhost": "nosuch"}]}, "queue 'q': NOT_ALLOWED - vhost nosuch not found"),
        ({"queues": [{"name": "amq.q", "vhost": "/"}]}, "queue 'amq.q': ACCESS_REFUSED"),
        ({"exchanges": [{"name": "x", "vhost": "/", "type": "nope"}]}, "unknown exchange type 'nope'"),
        ({"bindings": [{"source": "x", "vhost": "/", "destination": "q"}]}, "NOT_FOUND"),
        ({"users": [{"name": "u", "password_hash": "!"}]}, "user 'u': password_hash is not a valid"),
        ({"permissions": [{"user": "u", "vhost": "/"}]}, "configure is missing"),
        ({"parameters": [{"vhost": "/", "name": "n", "component": "shovel", "value": {}}]}, "component 'shovel'"),
    ],
)
def test_definitions_that_cannot_be_taken(api: httpx.Client, body: dict[str, Any], words: str) -> None:
    answer = api.post("definitions", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["reason"]
