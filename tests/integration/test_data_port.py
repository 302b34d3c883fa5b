"""The data port of a broker, with real sockets: reading messages that were published over AMQP, and hostile clients."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from pandomq import data_form
from pandomq.data_client.client import DataClient
from pandomq.data_client.discovery import server_properties
from pandomq.data_client.failures import DataFailure, NoSuchStream, NotAllowed, Unreachable
from pandomq.data_client.urls import Address

from .configured_broker import ConfiguredBroker, running
from .data_rows import numbers, read_all, rows_of
from .stream_reader import StreamReader, declare, fill
from .tls_brokers import PASSWORD, USER, tls_broker
from .waiting import wait_until

MESSAGES, SIZE = 400, 10_000
"""Some chunks that are on the disk, and one that is not sealed."""


@pytest.fixture(autouse=True)
def broker_stays_healthy() -> None:
    """The neighbouring tests share one broker; these have their own."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    with running(ConfiguredBroker(tmp_path_factory.mktemp("data-port"))) as broker:
        with broker.connect() as connection:
            publish(connection)
        yield broker


def publish(connection: pika.BlockingConnection) -> None:
    channel = connection.channel()
    declare(channel, "s")
    fill(channel, "s", 0, MESSAGES - 1, SIZE)
    # The last one is confirmed, and all before it with it.
    channel.confirm_delivery()
    fill(channel, "s", MESSAGES - 1, MESSAGES, SIZE)


def url(broker: ConfiguredBroker) -> str:
    return f"amqp://127.0.0.1:{broker.port}"


def data_address(broker: ConfiguredBroker) -> Address:
    port = server_properties(Address("127.0.0.1", broker.port), None, 10.0)["data"]
    return Address("127.0.0.1", int(port.removeprefix(":")))


def test_a_stream_is_read_as_it_was_published(broker: ConfiguredBroker) -> None:
    with DataClient(url(broker)) as client:
        assert client.streams() == ["s"]
        rows = read_all(client, "s")
        assert numbers(rows) == list(range(MESSAGES))
        assert {(row.exchange, row.routing_key) for row in rows} == {(b"", b"s")}
        index = client.index("s", 0, MESSAGES)
        assert len(index) > 2
        assert [row.first_offset for row in index[1:]] == [row.last_offset + 1 for row in index[:-1]]
        middle = rows_of(client.chunks("s", 123, 321, bytes_max=1))
        assert [row.offset for row in middle] == list(range(123, 321))
        assert client.offset_at("s", rows[200].time_us) <= 200
        with pytest.raises(NoSuchStream):
            list(client.chunks("t", 0, 1))


def test_a_compressed_stream_is_read_like_any_other(broker: ConfiguredBroker) -> None:
    with broker.connect() as connection:
        channel = connection.channel()
        declare(channel, "packed", **{"x-stream-compression": "zstd"})
        channel.confirm_delivery()
        fill(channel, "packed", 0, MESSAGES, SIZE)
        with DataClient(url(broker)) as client:
            rows = read_all(client, "packed")
            assert numbers(rows) == list(range(MESSAGES))
            index = client.index("packed", 0, MESSAGES)
            sent = client.ask("read", {"stream": "packed", "first_offset": 0, "end_offset": 1, "bytes_max": 1})[1]
            assert len(sent) < index[0].size_bytes / 10, "what is said of its size is what its messages have"
        assert StreamReader(channel, "packed").read_to(MESSAGES) == list(range(MESSAGES))
        channel.queue_delete("packed")


def test_offsets_by_name(broker: ConfiguredBroker) -> None:
    with DataClient(url(broker)) as client:
        client.store_offset("s", "me", 17)
        assert client.stored_offsets("s")["me"] == 17


def test_many_read_at_once(broker: ConfiguredBroker) -> None:
    clients = [DataClient(url(broker)) for _ in range(20)]
    readers = [client.chunks("s", 0, MESSAGES, bytes_max=1) for client in clients]
    taken = [[next(reader)] for reader in readers]
    for reader, slices in zip(readers, taken, strict=True):
        slices += reader
        assert numbers(rows_of(slices)) == list(range(MESSAGES))
    for client in clients:
        client.close()


def test_a_stream_outlives_a_restart(tmp_path: Path) -> None:
    broker = ConfiguredBroker(tmp_path)
    with running(broker):
        with broker.connect() as connection:
            publish(connection)
        with DataClient(url(broker)) as client:
            client.store_offset("s", "me", 3)
            before = read_all(client, "s")
        broker.stop()
        broker.start()
        with DataClient(url(broker)) as client:
            assert read_all(client, "s") == before
            assert client.stored_offsets("s") == {"me": 3}


def test_by_tls(tmp_path: Path) -> None:
    with tls_broker(tmp_path, "ask", external=True) as secured:
        with secured.connect() as connection:
            publish(connection)
        by_tls = f"amqps://{USER}:{PASSWORD}@localhost:{secured.port}"
        with DataClient(f"{by_tls}?cacertfile={secured.authority.certificate}") as client:
            assert numbers(read_all(client, "s")) == list(range(MESSAGES))
        with pytest.raises(DataFailure, match="not trusted"):
            DataClient(by_tls, timeout_s=10.0).range("s")
        for name, allowed in ((USER, True), ("nobody", False)):
            shown = secured.authority.client(name, name)
            files = f"cacertfile={secured.authority.certificate}&certfile={shown.certificate}&keyfile={shown.key}"
            by_certificate = f"amqps://localhost:{secured.port}?auth_mechanism=external&{files}"
            with contextlib.nullcontext() if allowed else pytest.raises(NotAllowed):
                assert DataClient(by_certificate, timeout_s=10.0).range("s").end_offset == MESSAGES


# Hostile and faulty clients.


def test_a_wrong_password(broker: ConfiguredBroker) -> None:
    with pytest.raises(NotAllowed):
        DataClient(f"amqp://guest:wrong@127.0.0.1:{broker.port}").range("s")
    with pytest.raises(NotAllowed):
        DataClient(f"{url(broker)}/elsewhere").range("s")


@pytest.mark.parametrize(
    "octets", [b"GET / HTTP/1.0\r\n\r\n", b"AMQP\x00\x00\x09\x01", struct.pack("<II", 2**31, 0), b"\x00" * 64]
)
def test_garbage_is_answered_with_an_error_and_closed(broker: ConfiguredBroker, octets: bytes) -> None:
    with socket.create_connection(data_address(broker), 20.0) as connection, connection.makefile("rb") as stream:
        connection.sendall(octets)
        sizes = data_form.decode_head(stream.read(8))
        assert data_form.decode_json(stream.read(sizes.json_bytes))["error"] == 400
        assert stream.read() == b""


def test_clients_that_do_not_read_harm_no_other_client(broker: ConfiguredBroker) -> None:
    hello = {"ask": "hello", "version": 1, "user": "guest", "password": "guest", "vhost": "/"}
    read = {"ask": "read", "stream": "s", "first_offset": 0, "end_offset": MESSAGES, "bytes_max": 2**24}
    sleepers = [socket.create_connection(data_address(broker), 20.0) for _ in range(8)]
    try:
        for sleeper in sleepers:
            sleeper.sendall(data_form.encode_json(hello) + 50 * data_form.encode_json(read))
        before = broker.resident_bytes
        with DataClient(url(broker)) as client:
            for _ in range(3):
                assert numbers(read_all(client, "s")) == list(range(MESSAGES))
        # Data that the clients do not read is not in memory.
        assert broker.resident_bytes < before + 64 * 2**20
    finally:
        for sleeper in sleepers:
            sleeper.close()


def test_clients_that_disconnect_during_an_answer_harm_no_other_client(broker: ConfiguredBroker) -> None:
    for _ in range(10):
        client = DataClient(url(broker))
        next(client.chunks("s", 0, MESSAGES, bytes_max=1))
        client.close()
    with DataClient(url(broker)) as client:
        assert numbers(read_all(client, "s")) == list(range(MESSAGES))


# The address.


def test_without_a_data_port(tmp_path: Path) -> None:
    with (
        running(ConfiguredBroker(tmp_path, data={"listen": "off"})) as broker,
        pytest.raises(Unreachable, match="has no data port"),
    ):
        DataClient(url(broker), timeout_s=1.0).range("s")


def test_the_broker_stops_quickly_while_a_client_is_connected(tmp_path: Path) -> None:
    with running(ConfiguredBroker(tmp_path)) as broker:
        client = DataClient(url(broker), timeout_s=1.0)
        assert client.streams() == []
        broker.stop()
        with pytest.raises(Unreachable):
            client.streams()
        broker.start()
        wait_until(lambda: DataClient(url(broker)).streams() == [], "the data port")
