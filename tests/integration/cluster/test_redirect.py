"""`access = "redirect"`: only the root serves clients, and the others name its address."""

from __future__ import annotations

from pathlib import Path

import pika
import pytest
from pika.exceptions import ProbableAccessDeniedError

from tests.support.client import Address, Connection

from .cluster import Cluster, running
from .secondaries import joined

pytestmark = [pytest.mark.timeout(180)]


@pytest.mark.proves("R11")
def test_a_broker_that_is_not_the_root_refuses_clients_and_names_the_root(tmp_path: Path) -> None:
    redirecting = Cluster(tmp_path, sections={"cluster": {"access": "redirect"}})
    with running(redirecting) as cluster, joined(cluster, "s1") as (secondary,):
        root = cluster.root
        refusing = [(broker, "backup") for broker in cluster.backups] + [(secondary, "secondary")]
        for broker, role in refusing:
            refusal = rf"\(320\) .*this broker is a {role}; the root is {root.name} at {root.address}"
            with pytest.raises(ProbableAccessDeniedError, match=refusal):
                pika.BlockingConnection(broker.parameters())
            # Before the refusal, the server's properties name the root.
            user, password = broker.login
            connection = Connection(Address(broker.host, broker.port))
            connection.log_in(response=f"\0{user}\0{password}".encode())
            assert connection.server_properties["root"] == root.address
            connection.close()
            # All brokers serve the management API.
            answer = broker.ask("queues")
            assert answer is not None and answer.status_code == 200
        with cluster.connect() as found:
            assert found.channel().queue_declare("", exclusive=True).method.message_count == 0
