"""Clients that are slow, silent, many or gone: they harm themselves, and other clients continue."""

from __future__ import annotations

import contextlib
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Connection
from tests.support.frames import METHOD, PROTOCOL_HEADER, FrameSocket, frame
from tests.support.methods import encode

from .bystander import Bystander
from .configured_broker import ConfiguredBroker, running
from .waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.only_ours("its log and its size are looked at")

HANDSHAKE_MS = 1000
TOO_SLOW = "dropped: the handshake was not completed in time"
SILENT = "dropped: nothing was received for two heartbeat intervals"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    limits = {"handshake_ms_max": HANDSHAKE_MS, "connections_max": 5000}
    with running(ConfiguredBroker(tmp_path_factory.mktemp("target"), limits=limits)) as broker:
        yield broker


@pytest.fixture
def bystander(target: ConfiguredBroker) -> Iterator[Bystander]:
    with Bystander(target.address()) as watching:
        yield watching


def dial(broker: ConfiguredBroker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), PATIENCE_S)


# Slow and silent.


def test_a_handshake_one_octet_at_a_time(target: ConfiguredBroker, bystander: Bystander) -> None:
    """Each octet is a sign of life, and none of them extends the time."""
    mark = target.mark()
    slow = [dial(target) for _ in range(20)]
    began = time.monotonic()
    sent = 0
    with selectors.DefaultSelector() as watched:
        for peer in slow:
            watched.register(peer, selectors.EVENT_READ, peer)
        while watched.get_map():
            for key, _ in watched.select(0.1):
                with contextlib.suppress(ConnectionError):
                    assert key.data.recv(1) == b"", "not even the greeting was complete"
                watched.unregister(key.fileobj)
            if sent < len(PROTOCOL_HEADER) - 1:
                for peer in slow:
                    with contextlib.suppress(ConnectionError):
                        peer.send(PROTOCOL_HEADER[sent : sent + 1])
                sent += 1
            assert time.monotonic() - began < PATIENCE_S
    for peer in slow:
        peer.close()
    wait_until(lambda: len(target.lines(TOO_SLOW, mark)) == len(slow))
    assert len(target.lines("WARNING|ERROR", mark)) == len(slow)


def test_half_a_frame_for_ever(target: ConfiguredBroker, bystander: Bystander) -> None:
    """In the middle of a frame, of a message, and of nothing: after two heartbeats without an octet they are
    disconnected."""
    mark = target.mark()
    halves = [
        b"",
        b"\x01\x00\x01\x00\x00",
        frame(METHOD, 1, encode("queue.declare", queue="q"))[:-3],
        frame(METHOD, 1, encode("basic.publish", routing_key="q")) + b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c",
    ]
    silent = []
    for half in halves:
        connection = target.open(heartbeat=1)
        connection.channel(1)
        connection.send_bytes(half)
        silent.append(connection)
    for connection in silent:
        connection.expect_eof()
        connection.drop()
    assert len(target.lines(SILENT, mark)) == len(halves)
    assert len(target.lines("WARNING|ERROR", mark)) == len(halves)


@pytest.mark.slow
def test_single_bytes_now_and_then_keep_a_connection_alive(target: ConfiguredBroker, bystander: Bystander) -> None:
    """A slow client is not dead: a frame that takes more than two heartbeats to arrive is accepted."""
    connection = target.open(heartbeat=1)
    connection.channel(1)
    declare = frame(METHOD, 1, encode("queue.declare", queue="slowly", exclusive=True))
    for octet in declare[:-1]:
        connection.send_bytes(bytes([octet]))
        time.sleep(2.5 / len(declare))
    connection.send_bytes(declare[-1:])
    assert connection.expect("queue.declare-ok", 1).queue == "slowly"
    connection.close()


# Many.


def told(lines: list[str]) -> int:
    """Returns the number of reported connections; most of them are counted in one line per second."""
    counted = [re.search(r" and (\d+) more within a second", line) for line in lines]
    return sum(1 if found is None else int(found[1]) for found in counted)


def test_a_flood_of_silent_connections_harms_no_other_client(target: ConfiguredBroker, bystander: Bystander) -> None:
    flood = 2000
    mark = target.mark()
    before = target.resident_bytes
    silent = []
    for _ in range(flood):
        silent.append(dial(target))
    bystander.goes_on()
    # Another client can connect meanwhile.
    target.open().close()
    for peer in silent:
        with contextlib.suppress(ConnectionError):
            assert peer.recv(1) == b""
        peer.close()
    wait_until(lambda: told(target.lines(TOO_SLOW, mark)) == flood, "all of them in the log")
    assert len(target.lines(TOO_SLOW, mark)) < flood / 2, "in few lines"
    assert (target.resident_bytes - before) / flood < 16 * 1024
    bystander.goes_on()


def test_a_storm_of_connections_that_come_and_go(target: ConfiguredBroker, bystander: Bystander) -> None:
    for _ in range(1000):
        peer = FrameSocket(dial(target))
        peer.send_bytes(PROTOCOL_HEADER)
        peer.drop()
    bystander.goes_on()
    target.open().close()


# Gone.


def test_a_client_whose_machine_stops_is_closed_and_its_messages_are_requeued(
    target: ConfiguredBroker, bystander: Bystander
) -> None:
    """Its operating system still acknowledges; a suspended peer or a broken network looks the same from here: no bytes
    arrive."""
    keeper = target.open()
    channel = keeper.channel()
    channel.declare_queue("held", exclusive=False)
    for number in range(30):
        channel.publish(str(number).encode(), "held")
    url = f"amqp://guest:guest@127.0.0.1:{target.port}/%2F?heartbeat=1"
    program = Path(__file__).with_name("unacked_consumer.py")
    mark = target.mark()
    victim = subprocess.Popen([sys.executable, str(program), url, "held", "30"], stdout=subprocess.PIPE, text=True)
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "holding\n"
        victim.send_signal(signal.SIGSTOP)
        wait_until(lambda: channel.counts("held")[0] == 30, "the messages of the client that stopped")
        assert len(target.lines(SILENT, mark)) == 1
    finally:
        victim.kill()
        victim.wait()
    assert channel.drain("held") == [str(number).encode() for number in range(30)]
    channel.rpc("queue.delete", queue="held")
    keeper.close()


@pytest.mark.slow
def test_a_close_that_is_never_answered(target: ConfiguredBroker, bystander: Bystander) -> None:
    mark = target.mark()
    stubborn: Connection = target.open()
    stubborn.send_bytes(b"garbage, garbage, garbage")
    assert stubborn.expect("connection.close").reply_code == 501
    stubborn.expect_eof(timeout_s=40.0)
    target.wait_for_line("dropped: connection.close was not answered in time", mark)
    stubborn.drop()
