"""Requests that are too large, broken, or never end: they harm themselves."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from pandomq.admin.limits import BODY_BYTES_MAX

from .http_broker import HttpBroker, unique
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")

LOGIN = "authorization: Basic " + base64.b64encode(b"guest:guest").decode()

HEAD = f"host: localhost\r\ncontent-type: application/json\r\n{LOGIN}"


def dial(http_broker: HttpBroker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", http_broker.http_port), timeout=20)


def everything(connection: socket.socket) -> bytes:
    answer = b""
    try:
        while piece := connection.recv(65536):
            answer += piece
    except ConnectionResetError:
        pass
    return answer


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(http_broker: HttpBroker) -> None:
    with dial(http_broker) as connection:
        head = f"PUT /api/queues/%2F/q HTTP/1.1\r\n{HEAD}\r\ncontent-length: {BODY_BYTES_MAX + 1}\r\n\r\n"
        connection.sendall(head.encode())
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"Exceeded HTTP request body size limit" in answer


def test_a_body_that_does_not_end_is_refused_when_it_is_too_large(http_broker: HttpBroker) -> None:
    chunk = b"%x\r\n" % 2**20 + b" " * 2**20 + b"\r\n"
    with dial(http_broker) as connection:
        head = f"PUT /api/queues/%2F/q HTTP/1.1\r\n{HEAD}\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        try:
            for _ in range(2 * BODY_BYTES_MAX // 2**20):
                connection.sendall(chunk)
        except OSError:
            pass
        answer = everything(connection)
    assert b" 413 " in answer or not answer


def test_a_large_body_is_taken(api: httpx.Client) -> None:
    name = unique()
    api.put(f"queues/%2F/{name}", json={})
    body = {"properties": {}, "routing_key": name, "payload": "x" * 15_000_000, "payload_encoding": "string"}
    assert api.post("exchanges/%2F/amq.default/publish", json=body).json() == {"routed": True}
    get = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto", "truncate": 10}
    [message] = api.post(f"queues/%2F/{name}/get", json=get).json()
    assert (message["payload"], message["payload_bytes"]) == ("x" * 10, 15_000_000)
    api.delete(f"queues/%2F/{name}")


def test_no_body_is_read_without_a_login(http_broker: HttpBroker) -> None:
    with dial(http_broker) as connection:
        connection.sendall(b"PUT /api/queues/%2F/q HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\nhalf")
        assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")


def test_no_body_is_read_with_a_forged_proof_of_the_key(http_broker: HttpBroker) -> None:
    """Twenty megabytes of lists took half a gigabyte and held up the broker for seconds."""
    proof = f"authorization: PandoMQ-Key 2:{int(time.time())}:{'0' * 64}:{'0' * 64}"
    head = (
        f"POST /api/cluster/promote HTTP/1.1\r\nhost: localhost\r\n{proof}\r\ncontent-length: {BODY_BYTES_MAX}\r\n\r\n"
    )
    with dial(http_broker) as connection:
        connection.sendall(head.encode())
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    "octets",
    [
        b"\0\1\2\3" * 100,
        b"GET\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /h\xff HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_a_malformed_request_is_answered_with_400_and_closed(http_broker: HttpBroker, octets: bytes) -> None:
    with dial(http_broker) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(octets)
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 400 ") or answer == b""
    assert http_broker.fetch("/healthz").status_code == 200


def test_requests_in_a_row_are_answered_in_order(http_broker: HttpBroker) -> None:
    paths = ["/healthz", "/readyz", "/api/nosuch", "/healthz"]
    with dial(http_broker) as connection:
        heads = [f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n" for path in paths[:-1]]
        last = f"GET {paths[-1]} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        connection.sendall("".join([*heads, last]).encode())
        answer = everything(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"200", b"404", b"200"]


def test_a_client_that_disconnects_in_the_middle_harms_no_other_client(
    http_broker: HttpBroker, api: httpx.Client
) -> None:
    name = unique()
    for head in (
        f"PUT /api/queues/%2F/{name} HTTP/1.1\r\n{HEAD}\r\ncontent-length: 100\r\n\r\nhalf",
        f"GET /api/queues HTTP/1.1\r\nhost: x\r\n{LOGIN}\r\n\r\n",
        f"POST /api/queues/%2F/nosuch/get HTTP/1.1\r\n{HEAD}\r\ncontent-length: 2\r\n\r\n{{}}",
    ):
        with dial(http_broker) as connection:
            connection.sendall(head.encode())
    assert api.get(f"queues/%2F/{name}").status_code == 404
    http_broker.process.check()


def test_a_flood_of_wrong_passwords_does_not_hold_up_messages(http_broker: HttpBroker, api: httpx.Client) -> None:
    """Each takes tens of milliseconds of a processor, but not of the loop; and known users need not wait behind
    them."""
    name = unique()
    with http_broker.amqp() as connection, contextlib.ExitStack() as flood:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name)
        for number in range(50):
            wrong = base64.b64encode(f"guest:wrong{number}".encode()).decode()
            attacker = flood.enter_context(dial(http_broker))
            attacker.sendall(f"GET /api/whoami HTTP/1.1\r\nhost: x\r\nauthorization: Basic {wrong}\r\n\r\n".encode())
        slowest = 0.0
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            begun = time.monotonic()
            channel.basic_publish("", name, b"m")
            assert api.get("whoami").status_code == 200
            slowest = max(slowest, time.monotonic() - begun)
        assert slowest < 1.0
        channel.queue_delete(name)
    assert "wrong" not in http_broker.process.log_text().replace("wrong password", "")
    # No request waits behind guesses whose clients have disconnected.
    login = base64.b64encode(b"guest:mistyped").decode()
    begun = time.monotonic()
    assert http_broker.fetch("/api/whoami", headers={"authorization": f"Basic {login}"}).status_code == 401
    assert time.monotonic() - begun < 15


def test_many_at_once(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique()
    api.put(f"queues/%2F/{name}", json={})

    def work(number: int) -> bool:
        body = {"properties": {}, "routing_key": name, "payload": str(number), "payload_encoding": "string"}
        return bool(api.post("exchanges/%2F/amq.default/publish", json=body).json()["routed"])

    with ThreadPoolExecutor(20) as pool:
        assert all(pool.map(work, range(100)))
    wait_until(lambda: api.get(f"queues/%2F/{name}").json()["messages"] == 100)
    api.delete(f"queues/%2F/{name}")


def test_a_port_of_thousands_of_digits_is_none(api: httpx.Client) -> None:
    answer = api.get(f"health/checks/port-listener/{'9' * 5_000}")
    assert (answer.status_code, answer.json()["reason"]) == (400, "Invalid port")
