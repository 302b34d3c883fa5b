"""Every endpoint against every role. The codes are those of RabbitMQ 3.10 for the same requests.

There are two vhosts, A and B. Each role has a user with that tag, who has permissions in A on names that begin with
"ok".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from .http_broker import HttpBroker, escaped, unique
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")

ROLES = ("", "management", "policymaker", "monitoring", "administrator")
OK = {"configure": "^ok.*", "write": ".*", "read": "^ok.*"}
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
PUBLISH = {"properties": {}, "routing_key": "nn", "payload": "x", "payload_encoding": "string"}
POLICY = {"pattern": "^zz", "definition": {"max-length": 1}}

# The codes of the roles, in the order of ROLES; with two numbers, the second is the length of the returned list.
ALL = (401, 200, 200, 200, 200)
MONITORING = (401, 401, 401, 200, 200)
ADMINISTRATOR = (401, 401, 401, 401, 200)
POLICYMAKER = (401, 401, 200, 401, 200)

READS: dict[str, tuple[int | tuple[int, int], ...]] = {
    "overview": ALL,
    "whoami": ALL,
    "cluster": ALL,
    "cluster-name": ALL,
    "extensions": ALL,
    "nodes": MONITORING,
    "nodes/t": MONITORING,
    "vhosts": ALL,
    "vhosts/A": ADMINISTRATOR,
    "users": ADMINISTRATOR,
    "users/guest": ADMINISTRATOR,
    "users/guest/permissions": ADMINISTRATOR,
    "users/guest/topic-permissions": ADMINISTRATOR,
    "users/without-permissions": ADMINISTRATOR,
    "permissions": ADMINISTRATOR,
    "permissions/A/guest": ADMINISTRATOR,
    "topic-permissions": ADMINISTRATOR,
    "topic-permissions/A/guest": (401, 401, 401, 401, 404),
    "vhosts/A/permissions": ADMINISTRATOR,
    "vhosts/A/topic-permissions": ADMINISTRATOR,
    "policies": ALL,
    "policies/A": ALL,
    "policies/B": ADMINISTRATOR,
    "policies/A/nosuch": (401, 401, 404, 401, 404),
    "policies/nosuch": (401, 404, 404, 404, 404),
    "operator-policies": ALL,
    "operator-policies/A": ALL,
    "operator-policies/B": ADMINISTRATOR,
    "operator-policies/A/nosuch": (401, 401, 401, 401, 404),
    "vhost-limits": ALL,
    "vhost-limits/A": ALL,
    "vhost-limits/B": MONITORING,
    "user-limits": ALL,
    "user-limits/guest": ALL,
    "definitions": ADMINISTRATOR,
    "definitions/A": ADMINISTRATOR,
    "exchanges/A": (401, (200, 7), (200, 7), (200, 7), (200, 7)),
    "exchanges/B": ADMINISTRATOR,
    "exchanges/A/amq.direct": ALL,
    "exchanges/B/amq.direct": ADMINISTRATOR,
    "exchanges/A/amq.direct/bindings/source": ALL,
    "exchanges/B/amq.direct/bindings/destination": ADMINISTRATOR,
    "queues/A": (401, (200, 3), (200, 3), (200, 3), (200, 3)),
    "queues/B": (401, 401, 401, 401, (200, 2)),
    "queues/A/okq": ALL,
    "queues/A/hidden": ALL,
    "queues/B/okq": ADMINISTRATOR,
    "queues/A/okq/bindings": ALL,
    "queues/B/okq/bindings": ADMINISTRATOR,
    "bindings/A": (401, (200, 3), (200, 3), (200, 3), (200, 3)),
    "bindings/B": ADMINISTRATOR,
    "bindings/A/e/amq.direct/q/okq": ALL,
    "bindings/B/e/amq.direct/q/okq": ADMINISTRATOR,
    "connections": ALL,
    "connections/GUEST": MONITORING,
    "connections/GUEST/channels": MONITORING,
    "connections/OWN": (401, 200, 401, 200, 200),
    "connections/OWN/channels": (401, 200, 401, 200, 200),
    "connections/username/guest": MONITORING,
    "channels": ALL,
    "channels/GUEST%20%281%29": MONITORING,
    "channels/OWN%20%281%29": (401, 200, 401, 200, 200),
    "vhosts/A/connections": (401, (200, 1), (200, 0), (200, 2), (200, 2)),
    "vhosts/B/connections": (401, 401, 401, 401, (200, 1)),
    "vhosts/A/channels": (401, (200, 1), (200, 0), (200, 2), (200, 2)),
    "vhosts/B/channels": (401, 401, 401, 401, (200, 1)),
    "consumers": ALL,
    "consumers/A": (401, (200, 1), (200, 0), (200, 2), (200, 2)),
    "consumers/B": (401, (200, 0), (200, 0), (200, 1), (200, 1)),
    "health/checks/alarms": ALL,
    "health/checks/local-alarms": ALL,
    "health/checks/virtual-hosts": ALL,
    "health/checks/is-in-service": ALL,
    "health/checks/protocol-listener/amqp": ALL,
    "health/checks/port-listener/1": (401, 503, 503, 503, 503),
    "health/checks/node-is-quorum-critical": ALL,
    "health/checks/node-is-mirror-sync-critical": ALL,
    "aliveness-test/A": (401, 401, 401, 401, 401),
    "aliveness-test/B": (401, 401, 401, 401, 401),
    "nosuch": (404, 404, 404, 404, 404),
}

# The order matters: the changes of one role affect the next one.
CHANGES: list[tuple[str, str, Any, tuple[int, ...]]] = [
    ("PUT", "queues/A/okT", {}, (401, 201, 204, 204, 204)),
    ("DELETE", "queues/A/okT", None, (401, 204, 404, 404, 404)),
    ("PUT", "queues/A/notok", {}, (401, 401, 401, 401, 401)),
    ("DELETE", "queues/A/hidden", None, (401, 401, 401, 401, 401)),
    ("PUT", "queues/B/okT", {}, (401, 401, 401, 401, 401)),
    ("DELETE", "queues/B/nosuch", None, (401, 401, 401, 401, 404)),
    ("DELETE", "queues/A/okq/contents", None, (401, 204, 204, 204, 204)),
    ("DELETE", "queues/A/hidden/contents", None, (401, 401, 401, 401, 401)),
    ("DELETE", "queues/B/okq/contents", None, (401, 401, 401, 401, 401)),
    ("POST", "queues/A/okq/get", GET, (401, 200, 200, 200, 200)),
    ("POST", "queues/A/hidden/get", GET, (401, 401, 401, 401, 401)),
    ("POST", "queues/B/okq/get", GET, (401, 401, 401, 401, 401)),
    ("PUT", "exchanges/A/okX", {}, (401, 201, 204, 204, 204)),
    ("DELETE", "exchanges/A/okX", None, (401, 204, 404, 404, 404)),
    ("PUT", "exchanges/A/noX", {}, (401, 401, 401, 401, 401)),
    ("PUT", "exchanges/B/okX", {}, (401, 401, 401, 401, 401)),
    ("POST", "exchanges/A/amq.default/publish", PUBLISH, (401, 200, 200, 200, 200)),
    ("POST", "exchanges/B/amq.default/publish", PUBLISH, (401, 401, 401, 401, 401)),
    ("POST", "bindings/A/e/amq.direct/q/okq", {}, (401, 401, 401, 401, 401)),
    ("POST", "bindings/B/e/amq.direct/q/okq", {}, (401, 401, 401, 401, 401)),
    ("PUT", "vhosts/T", {}, (401, 401, 401, 401, 201)),
    ("DELETE", "vhosts/T", None, (401, 401, 401, 401, 204)),
    ("PUT", "users/T", {"tags": ""}, (401, 401, 401, 401, 201)),
    ("DELETE", "users/T", None, (401, 401, 401, 401, 204)),
    ("POST", "users/bulk-delete", {"users": []}, (401, 401, 401, 401, 204)),
    ("PUT", "permissions/A/guest", OK, (401, 401, 401, 401, 204)),
    ("DELETE", "permissions/B/guest", None, (401, 401, 401, 401, 204)),
    ("PUT", "topic-permissions/A/guest", {"exchange": "x", "write": "", "read": ""}, (401, 401, 401, 401, 201)),
    ("DELETE", "topic-permissions/A/guest", None, (401, 401, 401, 401, 204)),
    ("PUT", "policies/A/p", POLICY, (401, 401, 201, 401, 204)),
    ("GET", "policies/A/p", None, POLICYMAKER),
    ("DELETE", "policies/A/p", None, (401, 401, 204, 401, 404)),
    ("PUT", "policies/B/p", POLICY, (401, 401, 401, 401, 201)),
    ("DELETE", "policies/B/p", None, (401, 401, 401, 401, 204)),
    ("PUT", "operator-policies/A/p", POLICY, (401, 401, 401, 401, 201)),
    ("GET", "operator-policies/A/p", None, ADMINISTRATOR),
    ("DELETE", "operator-policies/A/p", None, (401, 401, 401, 401, 204)),
    ("PUT", "vhost-limits/A/max-queues", {"value": 100}, (401, 401, 401, 401, 204)),
    ("DELETE", "vhost-limits/A/max-queues", None, (401, 401, 401, 401, 204)),
    ("PUT", "user-limits/guest/max-channels", {"value": 9}, (401, 401, 401, 401, 204)),
    ("DELETE", "user-limits/guest/max-channels", None, (401, 401, 401, 401, 204)),
    ("POST", "definitions", {}, (401, 401, 401, 401, 204)),
    ("POST", "definitions/A", {}, (401, 401, 401, 401, 204)),
    ("DELETE", "connections/username/nosuch", None, (401, 401, 401, 401, 204)),
    ("DELETE", "connections/GUEST", None, (401, 401, 401, 401, 204)),
    ("DELETE", "connections/OWN", None, (401, 204, 404, 404, 404)),
    ("DELETE", "users/guest/permissions", None, (405, 405, 405, 405, 405)),
]


class Scene(NamedTuple):
    clients: list[httpx.Client]
    """The clients by role."""
    names: dict[str, str]
    """The values of the words in capitals."""

    def path(self, template: str) -> str:
        return "/".join(self._part(part) for part in template.split("/"))

    def _part(self, part: str) -> str:
        for word in ("GUEST", "OWN"):
            if part.startswith(word):
                return escaped(self.names[word]) + part.removeprefix(word)
        return self.names.get(part, part)


@pytest.fixture(scope="module")
def scene(http_broker: HttpBroker, api: httpx.Client) -> Iterator[Scene]:
    a, b = unique("va"), unique("vb")
    guest = unique("guest")
    for vhost in (a, b):
        api.put(f"vhosts/{vhost}")
    api.put(f"users/{guest}", json={"password": "pw", "tags": ""})
    for vhost in (a, b):
        api.put(f"permissions/{vhost}/{guest}", json={"configure": ".*", "write": ".*", "read": ".*"})
    users = {role: unique(f"r_{role}") for role in ROLES}
    for role, user in users.items():
        api.put(f"users/{user}", json={"password": "pw", "tags": role})
        api.put(f"permissions/{a}/{user}", json=OK)
    own = users["management"]
    with (
        http_broker.amqp(guest, "pw", a) as first,
        http_broker.amqp(guest, "pw", b) as second,
        http_broker.amqp(own, "pw", a) as third,
    ):
        for connection, hidden in ((first, "hidden"), (second, "hidden"), (third, "okhidden")):
            channel = connection.channel()
            channel.queue_declare("okq")
            channel.queue_declare(hidden)
            channel.basic_consume("okq", lambda *_: None)
        by_user = {(row["user"], row["vhost"]): row["name"] for row in api.get("connections").json()}
        names = {"A": a, "B": b, "GUEST": by_user[guest, a], "OWN": by_user[own, a], "guest": guest, "T": unique("t")}
        yield Scene([http_broker.client(user, "pw") for user in users.values()], names)
    for vhost in (a, b):
        api.delete(f"vhosts/{vhost}")
    for user in (guest, *users.values()):
        api.delete(f"users/{user}")


@pytest.mark.parametrize("path", READS)
def test_each_role_reads_its_paths(scene: Scene, path: str) -> None:
    answers = [client.get(scene.path(path)) for client in scene.clients]
    expected = READS[path]
    assert [answer.status_code for answer in answers] == [
        code if isinstance(code, int) else code[0] for code in expected
    ]
    for answer, code in zip(answers, expected, strict=True):
        if not isinstance(code, int):
            assert len(answer.json()) == code[1]
        if answer.status_code == 401:
            assert answer.json()["error"] == "not_authorised"


def test_each_role_lists_its_vhosts(scene: Scene, api: httpx.Client) -> None:
    _, management, policymaker, monitoring, administrator = scene.clients
    a, b = scene.names["A"], scene.names["B"]
    for path in ("queues", "exchanges", "bindings"):
        for client in (management, policymaker, monitoring):
            assert {row["vhost"] for row in client.get(path).json()} == {a}, path
        assert {row["vhost"] for row in administrator.get(path).json()} >= {a, b}
    assert [row["name"] for row in management.get("vhosts").json()] == [a]
    assert {row["name"] for row in monitoring.get("vhosts").json()} == {row["name"] for row in api.get("vhosts").json()}
    own = management.get("whoami").json()["name"]
    for path in ("connections", "channels"):
        assert {row["user"] for row in management.get(path).json()} == {own}
        assert policymaker.get(path).json() == []
        assert {row["user"] for row in monitoring.get(path).json()} >= {own, scene.names["guest"]}
    assert {row["channel_details"]["user"] for row in management.get("consumers").json()} == {own}


def test_the_overview_counts_visible_objects(scene: Scene) -> None:
    _, management, policymaker, monitoring, administrator = scene.clients
    totals = management.get("overview").json()
    assert totals["object_totals"] == {"connections": 1, "channels": 1, "consumers": 2, "exchanges": 7, "queues": 3}
    assert "listeners" not in totals
    assert policymaker.get("overview").json()["object_totals"]["connections"] == 0
    assert monitoring.get("overview").json()["listeners"]
    assert administrator.get("overview").json()["object_totals"]["queues"] >= 5


def test_each_role_changes_its_paths(scene: Scene, api: httpx.Client) -> None:
    for method, path, body, expected in CHANGES:
        if path == "connections/OWN" or path == "connections/GUEST":
            continue
        content = {} if body is None else {"json": body}
        codes = tuple(client.request(method, scene.path(path), **content).status_code for client in scene.clients)
        assert codes == expected, f"{method} {path}"


def test_each_role_closes_its_connections(scene: Scene, api: httpx.Client) -> None:
    """This test is the last, since the others need the connections."""
    for method, path, _, expected in CHANGES:
        if not path.endswith(("/OWN", "/GUEST")):
            continue
        codes = []
        for client in scene.clients:
            codes.append(client.request(method, scene.path(path)).status_code)
            if codes[-1] == 204:
                wait_until(lambda path=path: api.get(scene.path(path)).status_code == 404)  # type: ignore[misc]
        assert tuple(codes) == expected, path


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("", 401),
        ("Basic Z3Vlc3Q6d3Jvbmc=", 401),
        ("Basic bm9zdWNoOng=", 401),
        ("Basic Z3Vlc3Q=", 401),
        ("Bearer x", 401),
        ("Basic !!!", 400),
        ("Basic //86//8=", 400),
    ],
)
def test_logins_that_fail(http_broker: HttpBroker, header: str, status: int) -> None:
    answer = http_broker.fetch("/api/whoami", headers={"authorization": header} if header else {})
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["www-authenticate"].startswith("Basic realm=")
        assert answer.json() == {"error": "not_authorized", "reason": "Login failed"}


@pytest.mark.parametrize("path", sorted({path for path in READS if path not in ("nosuch",)}))
def test_without_a_login_there_is_nothing_to_see(http_broker: HttpBroker, scene: Scene, path: str) -> None:
    assert http_broker.fetch(f"/api/{scene.path(path)}").status_code == 401
