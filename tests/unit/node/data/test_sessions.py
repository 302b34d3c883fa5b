"""Clients of the data port, their requests, and the end of clients that send garbage, nothing, or too much."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from pandomq import data_form
from pandomq.broker.log.commands import DeletePermissions, DeleteUser
from pandomq.data_form import Fields
from pandomq.node.data import limits
from pandomq.node.data.handlers import HANDLERS
from pandomq.node.data.refusals import RequestRefused
from pandomq.node.data.session import DataSession, Responder

from .data_port import HELLO, DataPort, encode

LATER: list[Responder] = []


def _echo(_client: DataSession, fields: Fields, payload: bytes, answer: Responder) -> None:
    answer.ok({"said": fields["word"], "size": len(payload)}, [payload[:3], memoryview(payload)[3:]])


def _wait(_client: DataSession, _fields: Fields, _payload: bytes, answer: Responder) -> None:
    LATER.append(answer)


def _refuse(_client: DataSession, _fields: Fields, _payload: bytes, _answer: Responder) -> None:
    raise RequestRefused(406, "no", hint=7)


@pytest.fixture(autouse=True)
def _handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, handler in (("echo", _echo), ("wait", _wait), ("refuse", _refuse)):
        monkeypatch.setitem(HANDLERS, name, handler)
    LATER.clear()
    yield
    LATER.clear()


# Coming in.


def test_the_answer_to_hello_names_the_broker_its_role_and_the_root() -> None:
    connection = DataPort().connect()
    assert connection.greet() == {"node": "n1", "role": "root", "root": "", "brokers": []}
    assert not connection.closed


def test_hello_comes_first() -> None:
    connection = DataPort().connect()
    assert connection.ask({"ask": "echo", "word": "x"})["error"] == 403
    assert connection.closed


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_refused(version: object) -> None:
    connection = DataPort().connect()
    answer = connection.greet(version=version)
    assert answer["error"] == 400
    assert "version 1" in answer["text"]
    assert connection.closed


@pytest.mark.parametrize("other", [{"password": "wrong"}, {"user": "nobody"}])
def test_a_wrong_password_is_refused_after_a_while(other: Fields) -> None:
    port = DataPort()
    connection = port.connect()
    connection.say({**HELLO, **other})
    assert connection.octets == b""
    port.pass_ms(1000)
    assert connection.answer()["error"] == 403
    assert connection.closed
    port.known()


def test_a_user_of_the_loopback_is_refused_from_another_machine() -> None:
    port = DataPort()
    connection = port.connect(("10.0.0.1", 4000))
    connection.say(HELLO)
    port.pass_ms(1000)
    assert connection.answer()["error"] == 403
    assert connection.closed


def test_an_address_that_fails_again_waits_longer() -> None:
    port = DataPort()
    waits = []
    for _ in range(3):
        connection = port.connect()
        connection.say({**HELLO, "password": "wrong"})
        waited = 0
        while not connection.octets:
            port.pass_ms(250)
            waited += 250
        waits.append(waited)
    assert waits == sorted(waits)
    assert waits[-1] > waits[0]


@pytest.mark.parametrize("vhost", ["elsewhere", ""])
def test_a_vhost_that_is_not_there_is_refused(vhost: str) -> None:
    connection = DataPort().connect()
    assert connection.greet(vhost=vhost)["error"] == 403
    assert connection.closed


@pytest.mark.parametrize("other", [{"user": 5}, {"password": None}, {"vhost": ["/"]}, {"user": "x" * 300}])
def test_a_hello_of_the_wrong_types_is_refused(other: Fields) -> None:
    connection = DataPort().connect()
    assert connection.greet(**other)["error"] == 400
    assert connection.closed


def test_too_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 2)
    port = DataPort()
    first = port.known()
    port.known()
    third = port.connect()
    assert third.answer()["error"] == 503
    assert third.closed
    third.lose()
    first.lose()
    port.known()


# Requests and answers.


def test_answers_come_in_order_one_at_a_time() -> None:
    port = DataPort()
    connection = port.known()
    connection.say({"ask": "echo", "word": 1}, {"ask": "wait"}, {"ask": "echo", "word": 2})
    assert connection.answer()["said"] == 1
    assert connection.octets == b""
    LATER[0].ok({"late": True})
    port.step()
    assert connection.answer() == {"late": True}
    assert connection.answer()["said"] == 2


def test_a_payload_goes_there_and_back() -> None:
    connection = DataPort().known()
    assert connection.ask({"ask": "echo", "word": "x"}, b"payload")["size"] == 7
    assert connection.payload == b"payload"


def test_a_request_may_come_octet_by_octet() -> None:
    connection = DataPort().known()
    for octet in encode({"ask": "echo", "word": "x"}, b"payload"):
        connection.say_octets(bytes((octet,)))
    assert connection.answer()["size"] == 7


def test_a_refusal_leaves_the_connection_open() -> None:
    connection = DataPort().known()
    assert connection.ask({"ask": "refuse"}) == {"error": 406, "text": "no", "hint": 7}
    assert connection.ask({"ask": "what"})["error"] == 400
    assert connection.ask({"ask": None})["error"] == 400
    assert connection.ask({})["error"] == 400
    assert connection.ask(HELLO)["error"] == 400
    assert connection.ask({"ask": "echo", "word": "x"})["said"] == "x"


def test_no_request_is_handled_while_the_client_does_not_read_its_answers() -> None:
    port = DataPort()
    connection = port.known()
    connection.takes = False
    connection.say({"ask": "echo", "word": 1}, {"ask": "echo", "word": 2})
    assert connection.answer()["said"] == 1
    assert connection.octets == b""
    connection.take()
    assert connection.answer()["said"] == 2


def test_a_client_that_sends_many_requests_ahead_is_not_read_from() -> None:
    port = DataPort()
    connection = port.known()
    connection.say({"ask": "wait"}, *({"ask": "echo", "word": number} for number in range(20)))
    assert connection.reading_paused
    LATER[0].ok()
    port.step()
    connection.answer()
    assert [connection.answer()["said"] for _ in range(20)] == list(range(20))
    assert not connection.reading_paused


def test_rights_that_are_gone_are_missed_at_the_next_request() -> None:
    port = DataPort()
    connection = port.known()
    port.node.administer(DeletePermissions("/", "guest"), lambda fault: None)
    port.step()
    assert connection.ask({"ask": "echo", "word": 1})["error"] == 403
    port.node.administer(DeleteUser("guest"), lambda fault: None)
    port.step()
    assert connection.ask({"ask": "echo", "word": 1})["error"] == 403


def test_an_answer_to_a_client_that_has_disconnected_is_dropped() -> None:
    port = DataPort()
    connection = port.known()
    connection.say({"ask": "wait"})
    connection.lose()
    LATER[0].ok({})
    port.step()
    assert port.node.data.clients == {}


# Nonsense.


@pytest.mark.parametrize(
    "octets",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"AMQP\x00\x00\x09\x01",
        b"\xff" * 100,
        struct.pack("<II", 0, 0),
        struct.pack("<II", 5, 0) + b"hello",
        struct.pack("<II", 2, 0) + b"[]",
        struct.pack("<II", 4, 0) + b"\xff\xfe{}",
        struct.pack("<II", 12_000, 0) + b"[" * 12_000,
        struct.pack("<II", 2**20, 0),
        struct.pack("<II", 100, 2**20),
    ],
)
def test_garbage_instead_of_a_hello(octets: bytes) -> None:
    connection = DataPort().connect()
    connection.say_octets(octets)
    assert connection.answer()["error"] == 400
    assert connection.closed
    connection.say(HELLO)
    assert connection.octets == b""


@pytest.mark.parametrize("sizes", [(2**20 + 1, 0), (100, 2**24 + 1), (2**32 - 1, 2**32 - 1), (1, 5)])
def test_a_request_that_is_too_large(sizes: tuple[int, int]) -> None:
    connection = DataPort().known()
    connection.say_octets(struct.pack("<II", *sizes))
    assert connection.answer()["error"] == 400
    assert connection.closed


def test_garbage_behind_a_request_under_way_closes_the_connection() -> None:
    port = DataPort()
    connection = port.known()
    connection.say({"ask": "wait"})
    connection.say_octets(b"\xff" * 20)
    assert connection.closed
    LATER[0].ok({"late": True})
    port.step()
    assert connection.answer()["error"] == 400
    assert connection.octets == b""


def test_an_answer_that_would_be_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_client: DataSession, _fields: Fields, _payload: bytes, answer: Responder) -> None:
        answer.ok({"names": ["x" * 1000] * 2000})

    monkeypatch.setitem(HANDLERS, "endless", endless)
    assert DataPort().known().ask({"ask": "endless"})["error"] == data_form.TOO_LARGE


# Slowness.


def test_a_client_that_sends_no_complete_hello_in_time_is_closed() -> None:
    port = DataPort()
    connection = port.connect()
    for octet in encode(HELLO)[:40]:
        connection.say_octets(bytes((octet,)))
        port.pass_ms(500)
    assert connection.aborted
    assert port.node.data.clients == {}


def test_a_client_that_stops_in_the_middle_of_a_request_is_closed() -> None:
    port = DataPort()
    connection = port.known()
    connection.say_octets(encode({"ask": "echo"})[:-1])
    port.pass_ms(limits.STALL_MS_MAX - 5000)
    assert not connection.aborted
    port.pass_ms(10_000)
    port.pass_ms(limits.IDLE_MS_MAX)
    assert connection.aborted


def test_a_client_that_does_not_read_its_answer_in_time_is_closed() -> None:
    port = DataPort()
    connection = port.known()
    connection.takes = False
    connection.say({"ask": "echo", "word": 1})
    for _ in range(4):
        port.pass_ms(limits.STALL_MS_MAX // 2)
        port.node.data.progressed(connection.client, port.now_ms)
    assert not connection.aborted
    port.pass_ms(limits.STALL_MS_MAX + 1000)
    port.pass_ms(limits.STALL_MS_MAX + 1000)
    assert connection.aborted


def test_an_idle_client_is_closed() -> None:
    port = DataPort()
    connection = port.known()
    port.pass_ms(limits.IDLE_MS_MAX // 2)
    assert connection.ask({"ask": "echo", "word": 1})["said"] == 1
    port.pass_ms(limits.IDLE_MS_MAX - 5000)
    assert not connection.aborted
    port.pass_ms(limits.IDLE_MS_MAX)
    assert connection.aborted


def test_a_client_that_waits_for_its_answer_is_not_closed() -> None:
    port = DataPort()
    connection = port.known()
    connection.say({"ask": "wait"})
    for _ in range(10):
        port.pass_ms(limits.IDLE_MS_MAX)
    assert not connection.aborted
    LATER[0].ok({"late": True})
    port.step()
    assert connection.answer() == {"late": True}


# Room.


def test_large_requests_wait_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = b"x" * 100_000
    port = DataPort()
    port.node.data._room._bytes_max = 150_000
    first, second, third = port.known(), port.known(), port.known()
    first.say({"ask": "wait"}, payload=payload)
    second.say({"ask": "echo", "word": 2}, payload=payload)
    assert second.reading_paused
    # Small ones pass.
    assert third.ask({"ask": "echo", "word": 3})["said"] == 3
    LATER[0].ok()
    port.step()
    assert second.answer()["size"] == 100_000
    assert not second.reading_paused
    assert port.node.data._room.taken_bytes == 0


def test_a_client_that_disconnects_gives_its_room_back() -> None:
    payload = b"x" * 100_000
    port = DataPort()
    port.node.data._room._bytes_max = 150_000
    first, second, third = port.known(), port.known(), port.known()
    first.say_octets(encode({"ask": "echo", "word": 1}, payload)[:-1])
    second.say({"ask": "echo", "word": 2}, payload=payload)
    third.say({"ask": "echo", "word": 3}, payload=payload)
    assert second.reading_paused
    second.lose()
    first.lose()
    assert third.answer()["size"] == 100_000
    assert port.node.data._room.taken_bytes == 0


def test_answers_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OUTGOING_BYTES_MAX", 50_000)
    port = DataPort()
    first, second = port.known(), port.known()
    first.takes = False
    first.say({"ask": "echo", "word": 1}, payload=b"x" * 60_000)
    second.say({"ask": "echo", "word": 2})
    assert second.octets == b""
    first.take()
    assert second.answer()["said"] == 2


def test_clients_are_informed_when_the_broker_shuts_down() -> None:
    port = DataPort()
    idle, asking = port.known(), port.known()
    asking.say({"ask": "wait"})
    port.node.shut_down(port.now_ms)
    port.step()
    for connection in (idle, asking):
        assert connection.answer()["error"] == 503
        assert connection.closed
