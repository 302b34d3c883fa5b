"""An open connection: methods and runs in order, faults after what was valid, and how it ends."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pandomq.errors import connection_forced
from pandomq.kernel import Scanner
from pandomq.methods import (
    ChannelOpen,
    ChannelOpenOk,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionUnblocked,
    ConnectionUpdateSecret,
    ConnectionUpdateSecretOk,
    MethodInput,
    QueueDeclare,
)
from pandomq.wire.codec import HEARTBEAT, encode_frame
from pandomq.wire.connection import Connection
from pandomq.wire.inputs import Faulted, Input, PeerClosed, UpdateSecret
from pandomq.wire.offer import Agreed, Offer
from pandomq.wire.states import TRANSITIONS, ConnectionState
from tests.unit.wire.peer import (
    HEADER,
    Run,
    body_frame,
    fault_in,
    frames_of,
    in_state,
    new_connection,
    open_vhost,
    running,
    sent,
    start_ok,
    tune_ok,
)

CLOSE = encode_frame(0, ConnectionClose(200, "bye", 0, 0))
CLOSE_OK = encode_frame(0, ConnectionCloseOk())
DECLARE = encode_frame(1, QueueDeclare("q"))
NO_FRAME = b"\x01\x00\x01\x00\x00\x00\x00!"


def test_methods_and_runs_come_in_order() -> None:
    connection = running()
    data = encode_frame(1, ChannelOpen()) + body_frame(b"a") + HEARTBEAT + body_frame(b"b") + DECLARE
    expected: list[Any] = [MethodInput(1, ChannelOpen()), Run(b"a"), Run(b"b"), MethodInput(1, QueueDeclare("q"))]
    assert connection.receive(data) == expected


def test_methods_are_sent_on_their_channels() -> None:
    connection = running()
    connection.send(3, ChannelOpenOk())
    connection.send(4, ChannelOpenOk())
    assert connection.data_to_send() == encode_frame(3, ChannelOpenOk()) + encode_frame(4, ChannelOpenOk())
    assert connection.data_to_send() == b""


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (NO_FRAME, 501),
        (encode_frame(1, QueueDeclare("q"))[:-1] + b"!", 501),
        (b"\x01\x00\x01\x00\x00\x00\x04\x00\x32\x00\x63\xce", 540),
        (b"\x01\x00\x01\x00\x00\x00\x05\x00\x5a\x00\x0a!\xce", 501),
    ],
)
def test_a_fault_comes_after_the_valid_inputs_and_ends_them(bad: bytes, code: int) -> None:
    connection = running()
    *valid, last = connection.receive(DECLARE + body_frame(b"a") + bad + DECLARE + body_frame(b"b"))
    expected: list[Any] = [MethodInput(1, QueueDeclare("q")), Run(b"a")]
    assert valid == expected
    assert isinstance(last, Faulted)
    assert last.fault.reply_code == code
    assert in_state(connection, ConnectionState.ENDING)
    assert connection.receive(DECLARE) == []
    assert connection.data_to_send() == b"", "the broker's replies to what was valid go first"
    connection.close(last.fault, 0)
    assert [type(method) for method in sent(connection)] == [ConnectionClose]
    assert connection.receive(DECLARE) == []
    connection.receive(CLOSE_OK)
    assert in_state(connection, ConnectionState.CLOSED)


@pytest.mark.parametrize(
    ("octets", "ids"),
    [
        (start_ok(), (10, 11)),
        (tune_ok(), (10, 31)),
        (open_vhost(), (10, 40)),
        (CLOSE_OK, (10, 51)),
        (encode_frame(0, ConnectionBlocked("")), (10, 60)),
        (encode_frame(0, ChannelOpen()), (20, 10)),
        (encode_frame(0, QueueDeclare("q")), (50, 10)),
    ],
)
def test_methods_that_do_not_belong_on_channel_0_are_faults(octets: bytes, ids: tuple[int, int]) -> None:
    fault = fault_in(running().receive(octets))
    assert (fault.reply_code, fault.class_id, fault.method_id) == (504, *ids)
    assert fault.reply_text == "CHANNEL_ERROR - unexpected method in connection state running"


def test_connection_methods_on_other_channels_are_the_brokers_matter() -> None:
    (item,) = running().receive(encode_frame(1, ConnectionClose(200, "", 0, 0)))
    assert isinstance(item, MethodInput)


def test_the_peers_close_is_the_last_input() -> None:
    connection = running()
    expected: list[Any] = [Run(b"a"), PeerClosed(200, "bye")]
    assert connection.receive(body_frame(b"a") + CLOSE + DECLARE + body_frame(b"b")) == expected
    assert connection.data_to_send() == b""
    connection.confirm_close()
    assert connection.data_to_send() == CLOSE_OK
    assert in_state(connection, ConnectionState.CLOSED)
    assert connection.receive(DECLARE) == []


def test_the_brokers_close_discards_everything_until_close_ok() -> None:
    connection = running()
    connection.close(connection_forced("going down"), 0)
    assert sent(connection) == [ConnectionClose(320, "CONNECTION_FORCED - going down", 0, 0)]
    assert connection.receive(DECLARE + body_frame(b"a") + HEARTBEAT + tune_ok()) == []
    assert in_state(connection, ConnectionState.CLOSING)
    assert connection.receive(body_frame(b"b") + CLOSE_OK + DECLARE) == []
    assert in_state(connection, ConnectionState.CLOSED)
    assert connection.data_to_send() == b""


def test_only_the_first_close_counts() -> None:
    connection = running()
    connection.close(connection_forced("first"), 0)
    connection.close(connection_forced("second"), 0)
    assert len(sent(connection)) == 1
    connection.receive(CLOSE_OK)
    connection.close(connection_forced("third"), 0)
    assert sent(connection) == []


def test_closes_that_cross_are_both_answered() -> None:
    connection = running()
    connection.close(connection_forced("going down"), 0)
    sent(connection)
    assert connection.receive(CLOSE) == []
    assert connection.data_to_send() == CLOSE_OK
    assert in_state(connection, ConnectionState.CLOSING)
    connection.receive(CLOSE_OK)
    assert in_state(connection, ConnectionState.CLOSED)


@pytest.mark.parametrize("bad", [NO_FRAME, encode_frame(0, QueueDeclare("q")), encode_frame(0, ConnectionBlocked(""))])
@pytest.mark.parametrize("cut", [0, 1, 5, 12, len(CLOSE)])
def test_a_close_right_after_a_fault_is_answered_too(bad: bytes, cut: int) -> None:
    connection = running()
    fault = fault_in(connection.receive(bad + CLOSE[:cut]))
    connection.receive(CLOSE[cut:])
    connection.close(fault, 0)
    assert [type(method) for method in sent(connection)] == [ConnectionClose, ConnectionCloseOk]
    assert in_state(connection, ConnectionState.CLOSING)
    connection.receive(CLOSE_OK)
    assert in_state(connection, ConnectionState.CLOSED)


def test_a_close_that_is_itself_broken_is_no_close() -> None:
    connection = running()
    connection.close(fault_in(connection.receive(CLOSE[:-1] + b"!")), 0)
    assert [type(method) for method in sent(connection)] == [ConnectionClose]
    connection.receive(CLOSE_OK[:-1] + b"!")
    assert in_state(connection, ConnectionState.CLOSING)
    connection.receive(CLOSE_OK)
    assert in_state(connection, ConnectionState.CLOSED)


@pytest.mark.parametrize("cut", range(len(CLOSE_OK) + 1))
def test_close_ok_is_found_when_frames_are_lost(cut: int) -> None:
    connection = running()
    connection.close(fault_in(connection.receive(NO_FRAME + b"\x00" * 30)), 0)
    connection.receive(b"noise" + CLOSE_OK[:cut])
    connection.receive(CLOSE_OK[cut:])
    assert in_state(connection, ConnectionState.CLOSED)


def test_a_broker_fault_before_the_peers_close_sends_both() -> None:
    connection = running()
    assert len(connection.receive(DECLARE + CLOSE)) == 2
    connection.close(connection_forced("the declare went wrong"), 0)
    assert [type(method) for method in sent(connection)] == [ConnectionClose, ConnectionCloseOk]


def test_update_secret_is_the_brokers_to_answer() -> None:
    connection = running()
    data = encode_frame(0, ConnectionUpdateSecret(b"new", "rotation"))
    expected: list[Input] = [UpdateSecret(b"new", "rotation"), MethodInput(1, QueueDeclare("q"))]
    assert connection.receive(data + DECLARE) == expected
    connection.send(0, ConnectionUpdateSecretOk())
    assert sent(connection) == [ConnectionUpdateSecretOk()]


def test_blocked_is_sent_to_clients_with_the_capability() -> None:
    connection = running()
    connection.block("low on memory")
    connection.unblock()
    assert sent(connection) == [ConnectionBlocked("low on memory"), ConnectionUnblocked()]


@pytest.mark.parametrize("client_properties", [{}, {"capabilities": {"connection.blocked": False}}])
def test_blocked_is_not_sent_to_clients_without_the_capability(client_properties: dict[str, Any]) -> None:
    connection = running(client_properties)
    connection.block("low on memory")
    connection.unblock()
    assert connection.data_to_send() == b""


def test_blocked_is_sent_neither_before_the_open_nor_after_the_end() -> None:
    early, late = new_connection(), running()
    late.close(connection_forced("x"), 0)
    late.data_to_send()
    for connection in (early, late):
        connection.block("low on memory")
        connection.unblock()
        assert connection.data_to_send() == b""


def test_every_transition_has_a_meaning() -> None:
    arrivals = {method for row in TRANSITIONS.values() for method in row}
    assert all(method.amqp_name.startswith("connection.") for method in arrivals)
    assert ConnectionState.CLOSED not in TRANSITIONS
    assert {ConnectionState.LOGIN, ConnectionState.VHOST}.isdisjoint(TRANSITIONS), (
        "these wait for the broker, not for the peer"
    )


def test_an_idle_connection_is_small() -> None:
    connection: Connection = running()
    fields = [getattr(connection, name) for name in Connection.__slots__]
    own = [value for value in fields if isinstance(value, list | bytes | int)]
    assert sys.getsizeof(connection) + sum(map(sys.getsizeof, own)) < 1024
    assert frames_of(connection.data_to_send()) == []


def test_incomplete_messages_are_bounded() -> None:
    offer = Offer(version="1", message_bytes_max=1000, proposal=Agreed(2047, 4096, 60))
    connection = Connection(offer, Scanner, 0)
    connection.receive(HEADER)
    connection.receive(start_ok())
    connection.accept_login()
    connection.receive(tune_ok(frame_max=4096) + open_vhost())
    connection.accept_vhost(0)
    allowed = 2 * (1000 + 4096) // 920
    begun = b"\x01%b\0\0\0\x09\0\x3c\0\x28\0\0\0\0\0\xce\x02%b\0\0\0\x0e\0\x3c\0\0%b\0\0\xce"
    for number in range(1, allowed + 2):
        channel = number.to_bytes(2, "big")
        part = b"\x03" + channel + (900).to_bytes(4, "big") + b"x" * 900 + b"\xce"
        inputs = connection.receive(begun % (channel, channel, (1000).to_bytes(8, "big")) + part)
        if number <= allowed:
            assert inputs == []
    (faulted,) = inputs
    assert isinstance(faulted, Faulted)
    assert (faulted.fault.reply_code, faulted.fault.reply_text[:40]) == (
        506,
        "RESOURCE_ERROR - partly received message",
    )
