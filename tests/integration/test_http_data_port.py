"""Connections of the data port, over HTTP and in the metrics."""

from __future__ import annotations

import httpx
import pytest

from pandomq.data_client.client import DataClient

from .http_broker import HttpBroker, unique
from .test_http_health import samples

pytestmark = pytest.mark.only_ours("RabbitMQ has no such thing")


def test_connections_are_listed_and_counted(http_broker: HttpBroker, api: httpx.Client) -> None:
    before = samples(http_broker.fetch("/metrics").text)
    user = unique()
    api.put(f"users/{user}", json={"password": "p", "tags": "management"})
    with DataClient(f"amqp://127.0.0.1:{http_broker.process.port}") as client:
        client.streams()
        rows = [row for row in api.get("data-connections").json() if row["user"] == "guest"]
        assert [(row["vhost"], row["ssl"], row["state"], row["requests_waiting"]) for row in rows] == [
            ("/", False, "running", 0)
        ]
        row = rows[0]
        assert row["name"] == f"{row['peer_host']}:{row['peer_port']}" and row["node"]
        assert row["requests"] == 2 and row["recv_oct"] > 0 and row["send_oct"] > 0
        assert http_broker.fetch("/api/data-connections", auth=(user, "p")).json() == [], "they are another's"
        after = samples(http_broker.fetch("/metrics").text)
        assert after["pandomq_data_connections"] - before["pandomq_data_connections"] == 1
        assert after["pandomq_data_connections_max"] == 1024
        assert after["pandomq_data_requests_total"] - before["pandomq_data_requests_total"] == 2
        for name, field in (("received", "recv_oct"), ("sent", "send_oct")):
            metric = f"pandomq_data_{name}_bytes_total"
            assert after[metric] - before[metric] == row[field]
    api.delete(f"users/{user}")
