"""Real brokers that dial each other: they elect a root, another one takes over, and brokers of other clusters are
refused on both sides."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

from tests.integration.certificates import Authority
from tests.integration.cluster.cluster import Cluster, running, write_key
from tests.integration.cluster.process import ClusterBroker
from tests.integration.waiting import wait_until
from tests.support.ports import free_ports

MESSAGES = 50
PERSISTENT = pika.BasicProperties(delivery_mode=2)
REDIRECT = {"cluster": {"access": "redirect"}}
ROOT_NAMED = re.compile(r"the root is (n\d) at (127\.0\.0\.1:\d+)")


@pytest.fixture(autouse=True)
def broker_stays_healthy() -> None:
    """The neighbouring tests share one broker; these have their own."""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Cluster]:
    """Two brokers that the test starts itself."""
    cluster = Cluster(tmp_path, size=2)
    yield cluster
    cluster.end()


def _root_named_by(broker: ClusterBroker) -> str:
    """The name and address in the refusal of a broker that is not the root; empty if it names none."""
    try:
        pika.BlockingConnection(broker.parameters()).close()
    except pika.exceptions.AMQPError as error:
        found = ROOT_NAMED.search(repr(error))
        return "" if found is None else f"{found[1]}={found[2]}"
    return ""


def test_confirmed_messages_are_at_the_next_root(tmp_path: Path) -> None:
    with running(Cluster(tmp_path, sections=REDIRECT)) as cluster:
        first = cluster.root
        with pika.BlockingConnection(first.parameters()) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("q", durable=True)
            for number in range(MESSAGES):
                channel.basic_publish("", "q", str(number).encode(), PERSISTENT)
        first.kill()
        # Every broker now names the new root, or is the new root.
        second = cluster.wait_for_root(other_than=first)
        (third,) = [broker for broker in cluster if broker not in (first, second)]
        wait_until(lambda: _root_named_by(third) == f"{second.name}={second.address}", "a refusal that names the root")
        with pika.BlockingConnection(second.parameters()) as connection:
            channel = connection.channel()
            got: list[int] = []
            for method, _, body in channel.consume("q", inactivity_timeout=20):
                assert method is not None, f"only {len(got)} came"
                channel.basic_ack(method.delivery_tag)
                got.append(int(body))
                if len(got) == MESSAGES:
                    break
            channel.cancel()
        assert got == list(range(MESSAGES))


@pytest.mark.proves("R1", "R14")
def test_a_client_may_name_its_cluster_and_request_the_root(tmp_path: Path) -> None:
    with running(Cluster(tmp_path)) as cluster:
        root = cluster.root
        named = {"cluster": root.status["cluster"]}
        with pika.BlockingConnection(root.parameters(client_properties=named)) as connection:
            announced = connection._impl.server_properties
            assert announced["cluster"] == named["cluster"]
            assert announced["root"] == root.address
            assert sorted(announced["brokers"]) == sorted(broker.address for broker in cluster)
            wait_until(lambda: [_connections(broker) for broker in cluster] == [{root.name: 1}] * 3, "all know of it")
        pika.BlockingConnection(root.parameters(client_properties={"connect_to_root": True})).close()
        for broker in cluster.backups:
            with pytest.raises(pika.exceptions.AMQPError, match=f"the root is {root.name} at {root.address}"):
                pika.BlockingConnection(broker.parameters(client_properties={"connect_to_root": True}))
        for broker in cluster:
            with pytest.raises(pika.exceptions.AMQPError, match=f"belongs to cluster {named['cluster']}, not to mine"):
                pika.BlockingConnection(broker.parameters(client_properties={"cluster": "mine"}))


def _connections(broker: ClusterBroker) -> dict[str, int]:
    """Returns the connections of brokers that have any."""
    return {member["name"]: member["connections"] for member in broker.status["members"] if member["connections"]}


@pytest.mark.proves("R1", "R35")
def test_a_broker_with_another_key_is_refused_and_both_log_it(pair: Cluster, tmp_path: Path) -> None:
    pair["n2"].configure({"cluster": {"key_file": str(write_key(tmp_path / "other key"))}})
    for broker in pair:
        broker.launch()
    for one, other in (("n1", "n2"), ("n2", "n1")):
        pair[one].wait_for_line(
            rf"no link to {other} at 127\.0\.0\.1:\d+: {one} and {other} have different cluster keys"
        )
        pair[one].wait_for_line(rf"rejected a link from .*: {other} and {one} have different cluster keys")


def test_an_address_of_its_own_is_noticed(pair: Cluster) -> None:
    own = pair["n1"].address
    pair["n1"].configure({"cluster": {"primaries": [f"n1={own}", f"n2=localhost:{own.split(':')[1]}"]}})
    pair["n1"].launch()
    pair["n1"].wait_for_line("no link to n2 at .*: n1 connected to itself: its own address is configured for n2")


@pytest.mark.proves("R35")
def test_clients_and_brokers_may_have_ports_of_their_own_and_links_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    cluster = Cluster(tmp_path, sections=REDIRECT)
    ports = free_ports(len(cluster.brokers))
    primaries = [f"{name}=127.0.0.1:{port}" for name, port in zip(cluster.brokers, ports, strict=True)]
    for broker, port in zip(cluster, ports, strict=True):
        broker.configure(_by_tls(authority, primaries, port))
    with running(cluster):
        backup = cluster.backups[0]
        # Clients are told the address for clients, not the address for brokers.
        wait_until(lambda: _root_named_by(backup) == f"{cluster.root.name}={cluster.root.address}", "a refusal")
        assert b"PANDOMQ" not in _mechanisms(backup)
        with pika.BlockingConnection(cluster.root.parameters()) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("large", durable=True)
            for _ in range(3):
                channel.basic_publish("", "large", bytes(range(256)) * 10_000, PERSISTENT)


@pytest.mark.proves("R35")
def test_a_certificate_of_another_authority_makes_no_link(pair: Cluster, tmp_path: Path) -> None:
    ports = free_ports(2)
    primaries = [f"n{place + 1}=127.0.0.1:{port}" for place, port in enumerate(ports)]
    for broker, port in zip(pair, ports, strict=True):
        authority = Authority(tmp_path / f"authority of {broker.name}", f"authority of {broker.name}")
        shown = authority.peer()
        files = {
            "certificate": str(shown.certificate),
            "key": str(shown.key),
            "authorities": str(authority.certificate),
        }
        broker.configure({"cluster": {"primaries": primaries, "listen": f"127.0.0.1:{port}"}, "cluster.tls": files})
        broker.start()
    pair["n1"].wait_for_line("no link to n2 at .*: the peer's certificate was rejected")


def _by_tls(authority: Authority, primaries: list[str], port: int) -> dict[str, dict[str, object]]:
    """Returns the settings of a broker whose links use TLS, on a port of their own."""
    shown = authority.peer()
    files = {"certificate": shown.certificate, "key": shown.key, "authorities": authority.certificate}
    return {
        "cluster": {"primaries": primaries, "listen": f"127.0.0.1:{port}"},
        "cluster.tls": {name: str(path) for name, path in files.items()},
    }


def _mechanisms(broker: ClusterBroker) -> bytes:
    """Returns the bytes of connection.start, which contain the offered mechanisms."""
    with socket.create_connection((broker.host, broker.port), 10) as sock:
        sock.sendall(b"AMQP\x00\x00\x09\x01")
        return sock.recv(4096)
