"""amqp-client.js on node, which allows no more than one heartbeat interval of silence."""

from __future__ import annotations

import subprocess

from .broker_under_test import BrokerUnderTest
from .conftest import NODE_DIRECTORY, node_client

TIMEOUT_S = 120


def test_heartbeats_each_second_keep_its_connections(broker: BrokerUnderTest) -> None:
    command = [node_client("@cloudamqp/amqp-client"), str(NODE_DIRECTORY / "heartbeats.js")]
    run = subprocess.run(
        [*command, broker.host, str(broker.port)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert run.returncode == 0, run.stderr
