"""Many connections to the HTTP API: they keep neither administrators nor health checks out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.http import NO_TLS

from .configured_broker import ConfiguredBroker, running
from .waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is used")


@contextmanager
def silent(broker: ConfiguredBroker, count: int) -> Iterator[list[socket.socket]]:
    """Connections of somebody who is not logged in and sends nothing."""
    port = int(broker.http_url.rpartition(":")[2])
    with ExitStack() as opened:
        yield [
            opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
            for _ in range(count)
        ]


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@pytest.mark.proves("R38")
def test_silent_connections_keep_no_other_client_out(tmp_path: Path) -> None:
    """The limits of the file apply, and those that SIGHUP reads later."""
    made = ConfiguredBroker(
        tmp_path / "b",
        node={"http": "127.0.0.1:0"},
        limits={"http_connections_max": 20, "http_connections_per_network_max": 4},
    )
    with running(made) as broker, broker.api() as administrator:
        assert administrator.get("overview").status_code == 200
        with silent(broker, 60) as connections:
            wait_until(lambda: sum(map(is_open, connections)) == 11, "three times four connections from the loopback")
            assert httpx.get(f"{broker.http_url}/readyz", verify=NO_TLS).status_code == 200
            assert httpx.get(f"{broker.http_url}/metrics", verify=NO_TLS).status_code == 200
            assert administrator.get("overview").status_code == 200
        broker.change(limits={"http_connections_max": 5, "http_connections_per_network_max": 0})
        assert "were reloaded" in broker.hang_up()
        with silent(broker, 60) as connections:
            wait_until(lambda: sum(map(is_open, connections)) == 5, "five connections")
            assert administrator.get("overview").status_code == 200


@pytest.mark.proves("R38")
def test_requests_in_progress_count_after_the_configuration_was_read_again(tmp_path: Path) -> None:
    made = ConfiguredBroker(tmp_path / "b", node={"http": "127.0.0.1:0"}, limits={"http_requests_per_user_max": 1})
    head = (
        b"PUT /api/vhosts/v HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"
        b"content-type: application/json\r\ncontent-length: 2\r\n\r\n"
    )
    with running(made) as broker, broker.api() as administrator, silent(broker, 1) as [connection]:
        connection.sendall(head)
        wait_until(lambda: administrator.get("overview").status_code == 429, "the request waits for its body")
        assert "were reloaded" in broker.hang_up()
        assert administrator.get("overview").status_code == 429
        connection.sendall(b"{}")
        wait_until(lambda: administrator.get("overview").status_code == 200, "the request is answered")
