"""Hostile names in paths and bodies: HTTP accepts every name that AMQP accepts."""

from __future__ import annotations

import base64
import json
import socket
from typing import Any

import httpx
import pytest

from .http_broker import HttpBroker, escaped, unique

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")

NAMES = [
    "a/b",
    "/",
    "//",
    "a b+c",
    "a%2Fb",
    "100%",
    "%",
    "ü€😀",
    "\u202eright to left",
    "nul\0inside",
    "\0",
    "tab\tand\x7f",
    "..",
    ".",
    "a/../b",
    "?query=1&x#fragment",
    "'\"<script>",
    "~",
    "amq",
    "contents",
    "bindings",
    "q",
    "é" * 127 + "x",
    "x" * 255,
]


@pytest.mark.parametrize("name", NAMES)
def test_queues_of_any_name(http_broker: HttpBroker, api: httpx.Client, name: str) -> None:
    part = escaped(name) if name not in (".", "..") else name.replace(".", "%2E")
    assert request(http_broker, "PUT", f"/api/queues/%2F/{part}", {}) == (201, None)
    status, shown = request(http_broker, "GET", f"/api/queues/%2F/{part}")
    assert (status, shown["name"]) == (200, name)
    with http_broker.amqp() as connection:
        assert connection.channel().queue_declare(name, passive=True).method.queue == name
    assert name in [row["name"] for row in api.get("queues/%2F").json()]
    bind = f"/api/bindings/%2F/e/amq.topic/q/{part}"
    assert request(http_broker, "POST", bind, {"routing_key": name})[0] == 201
    [binding] = request(http_broker, "GET", bind)[1]
    assert binding["routing_key"] == name
    assert request(http_broker, "DELETE", f"{bind}/{escaped(binding['properties_key'])}")[0] == 204
    for row in request(http_broker, "GET", f"/api/queues/%2F/{part}/bindings")[1]:
        assert (row["source"], row["destination"]) == ("", name)
    assert request(http_broker, "DELETE", f"/api/queues/%2F/{part}/contents")[0] == 204
    assert request(http_broker, "DELETE", f"/api/queues/%2F/{part}")[0] == 204
    assert request(http_broker, "GET", f"/api/queues/%2F/{part}")[0] == 404


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (".", "..")])
def test_everything_else_of_any_name(http_broker: HttpBroker, api: httpx.Client, name: str) -> None:
    part = escaped(name)
    assert api.put(f"exchanges/%2F/{part}", json={}).status_code == 201
    assert api.get(f"exchanges/%2F/{part}").json()["name"] == name
    assert api.get(f"exchanges/%2F/{part}/bindings/source").json() == []
    assert api.delete(f"exchanges/%2F/{part}").status_code == 204
    new_vhost = name != "/"
    assert api.put(f"vhosts/{part}").status_code == (201 if new_vhost else 204)
    assert api.get(f"vhosts/{part}").json()["name"] == name
    assert api.put(f"queues/{part}/q", json={}).status_code == 201
    assert api.get(f"queues/{part}/q").json()["vhost"] == name
    assert api.delete(f"queues/{part}/q").status_code == 204
    policy = {"pattern": "^$", "definition": {"max-length": 1}}
    assert api.put(f"policies/{part}/{part}", json=policy).status_code == 201
    assert api.delete(f"policies/{part}/{part}").status_code == 204
    assert api.put(f"users/{part}", json={"password": "pw", "tags": ["management", name]}).status_code == 201
    assert api.get(f"users/{part}").json()["tags"] == ["management", name]
    assert api.put(f"permissions/{part}/{part}", json={"configure": "", "write": "", "read": ""}).status_code == 201
    assert api.get(f"permissions/{part}/{part}").json()["user"] == name
    if ":" not in name:
        assert login(http_broker, name, "pw")[1] == {"name": name, "tags": ["management", name]}
    assert api.delete(f"users/{part}").status_code == 204
    if new_vhost:
        assert api.delete(f"vhosts/{part}").status_code == 204


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/queues/%2F/%FF", 400),
        ("/api/queues/%2F/%C3", 400),
        ("/api/queues/%2F/%ED%A0%80", 400),
        ("/api/queues/%2F/" + "x" * 256, 400),
        ("/api/queues/%2F/" + "%C3%A9" * 128, 400),
        ("/api/queues/%2F/" + "x" * 60_000, 400),
        ("/api/queues/" + "x" * 256 + "/q", 404),
    ],
)
def test_names_that_cannot_be(http_broker: HttpBroker, path: str, status: int) -> None:
    code, answer = request(http_broker, "PUT", path, {})
    assert code == status
    assert answer["error"] in ("bad_request", "not_found")


def test_paths_are_not_normalised(http_broker: HttpBroker) -> None:
    assert request(http_broker, "GET", "/api/queues/%2F/../../whoami")[0] == 404
    assert request(http_broker, "GET", "/api/./whoami")[0] == 404
    assert request(http_broker, "GET", "//api/whoami")[0] == 404
    assert request(http_broker, "GET", "/api/whoami/")[0] == 200
    assert request(http_broker, "GET", "/API/whoami")[0] == 404
    assert request(http_broker, "GET", "/")[0] == 404


def test_strange_names_in_metrics(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique() + '"\\\n}é'
    assert api.put(f"queues/%2F/{escaped(name)}", json={}).status_code == 201
    # Line ends are taken out of names, as in RabbitMQ.
    kept = name.replace("\n", "")
    text = httpx.get(f"http://127.0.0.1:{http_broker.http_port}/metrics/per-object", auth=("guest", "guest")).text
    quoted = kept.replace("\\", "\\\\").replace('"', '\\"')
    assert f'rabbitmq_queue_messages_ready{{vhost="/",queue="{quoted}"}} 0' in text
    api.delete(f"queues/%2F/{escaped(kept)}")


def login(http_broker: HttpBroker, user: str, password: str) -> tuple[int, Any]:
    return request(http_broker, "GET", "/api/whoami", user=user, password=password)


def request(
    http_broker: HttpBroker,
    method: str,
    path: str,
    body: object = None,
    *,
    user: str = "guest",
    password: str = "guest",
) -> tuple[int, Any]:
    """Sends the path exactly as it is written here, because clients normalize paths."""
    content = b"" if body is None else json.dumps(body).encode()
    credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Basic {credentials}\r\n"
        "connection: close\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", http_broker.http_port), timeout=20) as connection:
        connection.sendall(head.encode() + content)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    first, _, rest = answer.partition(b"\r\n")
    payload = rest.partition(b"\r\n\r\n")[2]
    return int(first.split()[1]), json.loads(payload) if payload else None
