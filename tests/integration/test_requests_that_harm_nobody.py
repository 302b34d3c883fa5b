"""Requests that once cost other clients their messages, their memory or seconds, on a live broker.

Beside each of them a client that publishes and consumes keeps its connection and its order, and never waits for more
than half a second. A pause counts as far as neither the broker's main thread nor the client's own waited for a
processor.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pandomq import data_form, limits
from pandomq.data_client.client import DataClient
from pandomq.data_client.discovery import server_properties
from pandomq.data_client.urls import Address as DataAddress
from tests.support.fields import Typed
from tests.unit.broker.staging_scene import frames

from .configured_broker import ConfiguredBroker, quick_hash, running
from .timed_bystander import Bystander
from .waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.only_ours("its users, its data port and its HTTP API are used")

PAUSE_S_MAX = 0.5
MALLORY, PASSWORD = "mallory", "a password"
LARGE_JSON = json.dumps({"queues": [[[[]] * 100] * 100] * 300}).encode()
MEMORY_MIB, ALARM_MIB = 200, 48
DYING = {"x-message-ttl": 1, "x-dead-letter-exchange": "mine.later"}
ATTEMPTS_MAX, ATTEMPTS, LEASES = 500, 600, limits.LEASES_PER_USER_MAX + 10
SIDE_BY_SIDE = 25
"""Connections on which one user stages."""
LATER = {"x-delayed-type": "fanout"}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    made = ConfiguredBroker(
        tmp_path_factory.mktemp("harm"),
        node={"http": "127.0.0.1:0"},
        limits={"memory_bytes_max": f"{MEMORY_MIB}MiB", "staged_attempts_per_user_max": ATTEMPTS_MAX},
    )
    with running(made) as broker:
        broker.define(
            users=[{"name": MALLORY, "tags": "", **quick_hash(PASSWORD)}],
            permissions=[
                {"user": MALLORY, "vhost": "/", "configure": "^$", "write": "^mine", "read": r"^(stream|mine\.empty)$"}
            ],
            queues=[
                {"name": "stream", "vhost": "/", "durable": True, "arguments": {"x-queue-type": "stream"}},
                {"name": "q", "vhost": "/", "durable": True},
                {"name": "mine.empty", "vhost": "/", "durable": True},
                {"name": "leased", "vhost": "/", "durable": True},
                {"name": "dying", "vhost": "/", "durable": True, "arguments": DYING},
            ],
            exchanges=[
                {"name": "mine", "vhost": "/", "type": "fanout", "durable": True},
                {"name": "mine.dying", "vhost": "/", "type": "fanout", "durable": True},
                {"name": "mine.leased", "vhost": "/", "type": "fanout", "durable": True},
                {"name": "mine.later", "vhost": "/", "type": "x-delayed-message", "durable": True, "arguments": LATER},
            ],
            bindings=[
                {"source": f"mine.{queue}", "vhost": "/", "destination": queue, "routing_key": "", "arguments": {}}
                for queue in ("dying", "leased")
            ],
        )
        yield broker


# The requests.


def consume_at_no_time(broker: ConfiguredBroker) -> None:
    for _ in range(20):
        channel = broker.open(MALLORY, PASSWORD).channel()
        channel.send("basic.qos", prefetch_count=1)
        channel.send("basic.consume", queue="stream", arguments={"x-stream-offset": Typed("T", 2**62)})
        while channel.receive().name != "channel.close":
            pass
        channel.connection.drop()


def on_data_port(
    broker: ConfiguredBroker, *requests: bytes, user: str = MALLORY, password: str = PASSWORD
) -> list[socket.socket]:
    port = server_properties(DataAddress("127.0.0.1", broker.port), None, 10.0)["data"]
    hello = {"ask": "hello", "version": 1, "user": user, "password": password, "vhost": "/"}
    streams = []
    for request in requests:
        stream = socket.create_connection(("127.0.0.1", int(port.removeprefix(":"))), PATIENCE_S)
        stream.sendall(data_form.encode_json(hello))
        assert "error" not in answer(stream)
        stream.sendall(request)
        streams.append(stream)
    return streams


def answer(stream: socket.socket) -> dict[str, Any]:
    sizes = data_form.decode_head(exactly(stream, data_form.HEAD.size))
    return data_form.decode_json(exactly(stream, sizes.total)[: sizes.json_bytes])


def exactly(stream: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = stream.recv(size - len(received))
        assert piece, "the broker closed the connection"
        received += piece
    return received


def owner_url(broker: ConfiguredBroker) -> str:
    return f"amqp://guest:guest@127.0.0.1:{broker.port}"


def refusals(broker: ConfiguredBroker, request: bytes, count: int) -> list[int]:
    """Sends the same request often, each time on a new connection; returns the codes of the answers."""
    codes = []
    for stream in on_data_port(broker, *[request] * count):
        with stream:
            codes.append(answer(stream).get("error", 0))
    return codes


def encoded(fields: dict[str, object]) -> bytes:
    octets = json.dumps(fields).encode()
    return struct.pack("<II", len(octets), 0) + octets


def commit_what_cannot_be_encoded(broker: ConfiguredBroker) -> None:
    assert set(refusals(broker, encoded({"ask": "commit", "query": "\ud800", "batch": 1, "attempts": []}), 5)) == {400}


def commit_for_another_user(broker: ConfiguredBroker) -> None:
    """Queries of two users are two queries, whatever their names. The parts of the owner stay, and are published when
    the owner commits them."""
    with DataClient(owner_url(broker)) as owner:
        owner.stage("q", 1, 0, "a", 0, frames("first", key="q"))
        for batch in (1, 2, 2**53, 2**62):
            codes = refusals(broker, encoded({"ask": "commit", "query": "q", "batch": batch, "attempts": []}), 5)
            assert (0 in codes) == (batch <= limits.STAGED_BATCH_MAX), codes
        assert owner.last_batch("q") == -1
        owner.stage("q", 1, 0, "a", 1, frames("second", key="q"))
        owner.commit("q", 1, [(0, "a", 2)])
        owner.stage("q", 2, 0, "a", 0, frames("third", key="q"))
        owner.commit("q", 2, [(0, "a", 1)])
        assert owner.last_batch("q") == 2
    connection = broker.open()
    assert connection.channel().drain("q") == [b"first", b"second", b"third"]
    connection.close()


def take_all_there_is(broker: ConfiguredBroker) -> None:
    """Another user still gets what it asks for, while the greedy one has all that one user may have."""
    stage = {"ask": "stage", "query": "w", "batch": 0, "partition": 0, "part": 0}
    lease = {"ask": "lease", "queue": "mine.empty", "messages_max": 1, "bytes_max": 100, "timeout_ms": 60_000}
    stages = [encoded({**stage, "attempt": f"a{number}"}) for number in range(ATTEMPTS)]
    leases = [encoded({**lease, "name": f"l{number}"}) for number in range(LEASES)]
    announced = struct.pack("<II", 100, 2**24) + b"{"
    staging = [stages[first::SIDE_BY_SIDE] for first in range(SIDE_BY_SIDE)]
    streams = on_data_port(broker, *map(b"".join, staging), b"".join(leases), *[announced] * 8)
    try:
        codes = Counter(
            answer(stream).get("error", 0) for stream, asked in zip(streams, staging, strict=False) for _ in asked
        )
        assert codes == {0: ATTEMPTS_MAX, 406: ATTEMPTS - ATTEMPTS_MAX}
        codes = Counter(answer(streams[SIDE_BY_SIDE]).get("error", 0) for _ in leases)
        assert codes == {0: limits.LEASES_PER_USER_MAX, 406: LEASES - limits.LEASES_PER_USER_MAX}
        with DataClient(owner_url(broker)) as other:
            other.stage("others", 0, 0, "a", 0, frames("x" * 1_000_000, key="q"))
            other.commit("others", 0, [(0, "a", 1)])
            other.lease("q", "others", messages_max=1, bytes_max=10_000_000, timeout_ms=5_000)
            other.end_lease("q", "others")
    finally:
        for stream in streams:
            stream.close()
    connection = broker.open()
    assert [len(body) for body in connection.channel().drain("q")] == [1_000_000]
    connection.close()


def make_up_a_proof(broker: ConfiguredBroker) -> None:
    proof = f"PandoMQ-Key 2:{int(time.time())}:{'0' * 64}:{'0' * 64}"
    headers = {"authorization": proof, "content-type": "application/json"}
    before = broker.resident_bytes
    for _ in range(3):
        try:
            answer = httpx.post(
                f"{broker.http_url}/api/cluster/promote", headers=headers, content=LARGE_JSON, timeout=PATIENCE_S
            )
            assert answer.status_code in (401, 413)
        except httpx.TransportError:
            # The broker closed the connection in the middle of the body.
            pass
    assert broker.resident_bytes - before < len(LARGE_JSON)


def import_nonsense(broker: ConfiguredBroker) -> None:
    """An administrator's mistakes."""
    with broker.api() as api:
        users = {"users": [{"name": "u", "tags": "", "limits": ["max-connections"], **quick_hash("x")}]}
        assert api.post("definitions", json=users).status_code == 400
        headers = {"content-type": "application/json"}
        assert api.post("definitions", content=LARGE_JSON, headers=headers).status_code == 400


def use_the_name_of_a_producer(broker: ConfiguredBroker) -> None:
    """The numbers of another user's producer are no repetitions, and its connection stays the owner's."""
    owner = broker.open()
    published = owner.channel()

    def publish_as_owner(number: int) -> None:
        with published.settling():
            published.publish(b"%d" % number, "q", headers={"x-producer": "ann", "x-sequence": number})

    publish_as_owner(1)
    connection = broker.open(MALLORY, PASSWORD)
    channel = connection.channel()
    with channel.settling():
        for number in (*range(10), *range(2**62, 2**62 + 100)):
            channel.publish(b"x", exchange="mine", headers={"x-producer": "ann", "x-sequence": number})
    connection.close()
    publish_as_owner(2)
    assert owner.channel().drain("q") == [b"1", b"2"]
    owner.close()


def fill_transactions(broker: ConfiguredBroker) -> None:
    before = broker.resident_bytes
    connection = broker.open(MALLORY, PASSWORD)
    body = bytes(1_000_000)
    most = before
    for _ in range(8):
        channel = connection.channel()
        channel.rpc("tx.select")
        for _ in range(2 * MEMORY_MIB // 8):
            try:
                channel.publish(body, "", exchange="mine")
            except OSError:
                break
        most = max(most, broker.resident_bytes)
    connection.drop()
    assert most - before < MEMORY_MIB * 2**20 // 2


def send_what_a_web_page_can(broker: ConfiguredBroker) -> None:
    """The browser of an administrator adds the stored login."""
    definitions = json.dumps({"users": [{"name": "intruder", "tags": "administrator", **quick_hash("x")}]})
    foreign = {"content-type": "text/plain", "origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    with broker.api() as api:
        for headers in (
            foreign,
            {**foreign, "host": "evil.example:15672"},
            {"content-type": "text/plain", "host": "evil.example:15672", "origin": "http://evil.example:15672"},
            {"content-type": "application/json", "host": "evil.example:15672"},
            {"content-type": "application/json", "origin": "https://evil.example"},
        ):
            assert api.post("definitions", content=definitions, headers=headers).status_code == 403
        assert api.post("definitions", content=definitions, headers={"content-type": "text/plain"}).status_code == 415
        assert api.get("users/intruder").status_code == 404


def publish(broker: ConfiguredBroker, exchange: str, routing_key: str, headers: dict[str, object]) -> None:
    connection = broker.open(MALLORY, PASSWORD)
    channel = connection.channel()
    with channel.settling():
        channel.publish(b"x", routing_key, exchange=exchange, delivery_mode=2, headers=headers)
    connection.close()


def delay_without_end(broker: ConfiguredBroker) -> None:
    """The broker reads the header when the message is published, or long after that, when it dies."""
    for exchange in ("mine.later", "mine.dying"):
        publish(broker, exchange, "", {"x-delay": "9" * 5_000})
    time.sleep(0.3)


def write_the_brokers_own_header(broker: ConfiguredBroker) -> None:
    """The exchange keeps the expiration of a delayed message in a header."""
    for value in (5, "x" * 300, "9" * 5_000):
        publish(broker, "mine.later", "", {"x-delay": 1, "x-pandomq-delayed-expiration": value})
    time.sleep(0.3)


def let_what_is_no_text_be_leased(broker: ConfiguredBroker) -> None:
    """A reader of the queue requeues it."""
    publish(broker, "mine.leased", "\udcff\udcfe", {})
    lease = {"queue": "leased", "name": "l"}
    asks = encoded({"ask": "lease", **lease, "messages_max": 1, "bytes_max": 100, "timeout_ms": 5000})
    [stream] = on_data_port(broker, asks + encoded({"ask": "end_lease", **lease}), user="guest", password="guest")
    channel = broker.open().channel()
    wait_until(lambda: channel.counts("leased") == (1, 0), "the message in its queue again")
    message = channel.get("leased")
    assert message is not None and (message.routing_key, message.redelivered) == ("\udcff\udcfe", True)
    channel.connection.close()
    stream.close()


HARM: dict[str, Callable[[ConfiguredBroker], None]] = {
    "1 and 2: a time far away": consume_at_no_time,
    "3: a lone surrogate": commit_what_cannot_be_encoded,
    "4: another user's query": commit_for_another_user,
    "5: a made-up proof of the key": make_up_a_proof,
    "6: another user's producer": use_the_name_of_a_producer,
    "7: transactions without end": fill_transactions,
    "8: nonsense in an import": import_nonsense,
    "9: a change by a web page": send_what_a_web_page_can,
    "10: everything for one user": take_all_there_is,
    "a delay of thousands of digits": delay_without_end,
    "a header of the broker's own": write_the_brokers_own_header,
    "a leased message whose key is no text": let_what_is_no_text_be_leased,
}


@pytest.mark.proves("R38")
@pytest.mark.parametrize("harm", HARM)
def test_a_bystander_loses_neither_its_connection_nor_its_order_nor_half_a_second(
    attacked: ConfiguredBroker, harm: str
) -> None:
    bystander = Bystander(attacked)
    try:
        bystander.goes_on()
        HARM[harm](attacked)
        bystander.goes_on()
        assert bystander.longest_s < PAUSE_S_MAX
    finally:
        bystander.leave()
    attacked.check()


@pytest.mark.proves("R38")
def test_uncommitted_transactions_count_towards_the_memory_alarm(tmp_path: Path) -> None:
    """One user may fill an eighth of the memory with them, so most of it is filled by messages here."""
    body = bytes(2**20)
    made = ConfiguredBroker(
        tmp_path / "alarm",
        node={"http": "127.0.0.1:0"},
        limits={"memory_bytes_max": f"{ALARM_MIB}MiB", "paging_bytes": 0},
    )
    with running(made) as broker, broker.api() as api:
        connection = broker.open()
        channel = connection.channel()
        queue = channel.declare_queue()
        with channel.settling():
            for _ in range(ALARM_MIB - 3):
                channel.publish(body, queue)

        def alarm() -> bool:
            return api.get("health/checks/alarms").status_code == 503

        assert not alarm()
        greedy = broker.open()
        transaction = greedy.channel()
        transaction.rpc("tx.select")
        for _ in range(ALARM_MIB // 8 - 1):
            transaction.publish(body, queue)
        wait_until(alarm, "the memory alarm")
        greedy.drop()
        channel.rpc("queue.purge", queue=queue)
        wait_until(lambda: not alarm(), "the end of the memory alarm")
        connection.close()
