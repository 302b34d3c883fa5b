"""Limits of connections, at, below and above: in total, of a user, of a vhost, and of the time for a handshake."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import httpx
import pika
import pytest
from pika.exceptions import AMQPConnectionError, ProbableAccessDeniedError

from tests.support.client import Connection
from tests.support.frames import PROTOCOL_HEADER, EndOfStreamError, FrameSocket

from .configured_broker import ConfiguredBroker, quick_hash, running
from .waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.only_ours("its limits are set for the tests")

IN_ALL, OF_A_USER, OF_A_VHOST = 10, 3, 4
HANDSHAKE_MS = 1000


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    broker = ConfiguredBroker(
        tmp_path_factory.mktemp("limited"),
        node={"http": "127.0.0.1:0"},
        limits={
            "connections_max": IN_ALL,
            "connections_per_user_max": OF_A_USER,
            "connections_per_vhost_max": OF_A_VHOST,
            "handshake_ms_max": HANDSHAKE_MS,
        },
    )
    with running(broker):
        vhosts = ["/", *(f"v{number}" for number in range(4))]
        users = [f"u{number}" for number in range(IN_ALL)]
        broker.define(
            vhosts=[{"name": vhost} for vhost in vhosts],
            # The hash is quick, so that ten users log in at once.
            users=[{"name": user, **quick_hash(f"secret of {user}"), "tags": ""} for user in users],
            permissions=[
                {"user": user, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}
                for user in users
                for vhost in vhosts
            ],
        )
        yield broker


@pytest.fixture
def opened(limited: ConfiguredBroker) -> Iterator[contextlib.ExitStack]:
    """Closes the connections that a test opened; the broker is empty again afterwards."""
    with contextlib.ExitStack() as stack:
        yield stack


def connect(broker: ConfiguredBroker, number: int, vhost: str = "/") -> pika.BlockingConnection:
    return broker.connect(f"u{number}", f"secret of u{number}", virtual_host=vhost)


def serves(connection: pika.BlockingConnection) -> bool:
    return bool(connection.channel().queue_declare("", exclusive=True).method.queue)


def test_connections_of_one_user(limited: ConfiguredBroker, opened: contextlib.ExitStack) -> None:
    mine = [opened.enter_context(connect(limited, 0, f"v{number}")) for number in range(OF_A_USER)]
    mark = limited.mark()
    with pytest.raises(ProbableAccessDeniedError) as caught:
        connect(limited, 0)
    text = "NOT_ALLOWED - connection refused for user 'u0': user connection limit (3) is reached"
    assert f'(530) "{text}"' in str(caught.value)
    assert len(limited.lines("connection 127.0.0.1:.* rejected: 530 NOT_ALLOWED.*user connection limit", mark)) == 1
    assert all(serves(connection) for connection in mine)
    # Another user is not affected; and after one connection has closed there is room.
    connect(limited, 1).close()
    mine.pop().close()
    connect(limited, 0).close()


def test_connections_to_one_vhost(limited: ConfiguredBroker, opened: contextlib.ExitStack) -> None:
    there = [opened.enter_context(connect(limited, number, "v1")) for number in range(OF_A_VHOST)]
    with pytest.raises(ProbableAccessDeniedError) as caught:
        connect(limited, 9, "v1")
    text = "NOT_ALLOWED - access to vhost 'v1' refused for user 'u9': connection limit (4) is reached"
    assert f'(530) "{text}"' in str(caught.value)
    assert all(serves(connection) for connection in there)
    connect(limited, 9, "v2").close()
    there.pop().close()
    connect(limited, 9, "v1").close()


def test_connections_in_all(limited: ConfiguredBroker, opened: contextlib.ExitStack) -> None:
    wait_until(lambda: has_room_for(limited, IN_ALL), "an empty broker")
    there = [opened.enter_context(connect(limited, number, f"v{number % 4}")) for number in range(IN_ALL)]
    mark = limited.mark()
    with pytest.raises(AMQPConnectionError):
        connect(limited, 9)
    assert limited.wait_for_line(
        "rejected connection from 127.0.0.1:.*: 10 connections are open, which is the limit", mark
    )
    assert all(serves(connection) for connection in there)
    # HTTP is counted separately: an administrator can log in to find the cause.
    listed = httpx.get(f"{limited.http_url}/api/connections", auth=("guest", "guest"), timeout=PATIENCE_S).json()
    assert len(listed) == IN_ALL
    there.pop().close()
    wait_until(lambda: has_room_for(limited, 1), "room for one")
    connect(limited, 9).close()


def has_room_for(broker: ConfiguredBroker, count: int) -> bool:
    """Closed sockets count until the broker has removed them."""
    with contextlib.ExitStack() as stack:
        try:
            for _ in range(count):
                probe = FrameSocket(socket.create_connection(("127.0.0.1", broker.port), PATIENCE_S))
                stack.callback(probe.drop)
                probe.send_bytes(PROTOCOL_HEADER)
                probe.read_frame()
        except (EndOfStreamError, ConnectionError):
            return False
    return True


def test_a_handshake_has_a_limited_time(limited: ConfiguredBroker) -> None:
    """The limit holds at any stage: nothing, one octet, the greeting, the greeting and an octet, the login."""
    mark = limited.mark()
    began = time.monotonic()
    strangers: list[FrameSocket] = []
    for octets in (0, 1, 8, 9):
        stranger = FrameSocket(socket.create_connection(("127.0.0.1", limited.port), PATIENCE_S))
        stranger.send_bytes((PROTOCOL_HEADER + b"\x01")[:octets])
        strangers.append(stranger)
    connection = Connection(limited.address())
    connection.log_in()
    connection.send("connection.tune-ok", channel_max=10, frame_max=4096, heartbeat=0)
    for stranger in (*strangers, connection):
        stranger.read_rest()
        assert HANDSHAKE_MS / 1000 * 0.9 < time.monotonic() - began
        stranger.drop()
    wait_until(lambda: len(limited.lines("dropped: the handshake was not completed in time", mark)) == 5)
    assert len(limited.lines("WARNING|ERROR", mark)) == 5


@pytest.mark.slow
def test_a_client_that_is_logged_in_has_no_deadline(limited: ConfiguredBroker) -> None:
    """The handshake's limit ends with the handshake, also for a client without heartbeats."""
    connection = limited.open(heartbeat=0)
    with pytest.raises(TimeoutError):
        connection.read_frame(HANDSHAKE_MS / 1000 + 0.5)
    connection.channel().declare_queue()
    connection.close()


def test_there_are_no_more_connections_than_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A system that allows few open files lowers the limit; beyond it clients are refused, without further effects."""
    files_max, room = 256, 192
    broker = ConfiguredBroker(tmp_path_factory.mktemp("few-files"))
    with running(broker, files_max) as few:
        assert few.lines(
            f"the operating system allows {files_max} open files, which limits the broker to {room} connections"
        )
        bystander = few.connect()
        silent = [socket.create_connection(("127.0.0.1", few.port), PATIENCE_S) for _ in range(room + 10)]
        wait_until(
            lambda: len(few.lines(f"rejected connection from .*: {room} connections are open")) == 11, "eleven refusals"
        )
        assert serves(bystander)
        for stranger in silent:
            stranger.close()
        wait_until(lambda: has_room_for(few, 100), "room")
        bystander.close()
