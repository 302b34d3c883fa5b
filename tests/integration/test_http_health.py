"""Health checks, metrics, and the views of the broker as a whole."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pandomq import __version__
from pandomq.data_client.client import DataClient
from pandomq.node.clients.offers import RABBITMQ_VERSION
from tests.unit.broker.staging_scene import frames

from .http_broker import HttpBroker, unique
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")


def test_health_checks_need_no_login(http_broker: HttpBroker) -> None:
    for path, text in (("/healthz", "ok\n"), ("/readyz", "ready\n")):
        answer = http_broker.fetch(path)
        assert (answer.status_code, answer.text) == (200, text)


def samples(text: str) -> dict[str, float]:
    return {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}


def test_metrics_under_the_names_that_dashboards_know(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique()
    before = samples(http_broker.fetch("/metrics").text)
    with http_broker.amqp() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name)
        for _ in range(3):
            channel.basic_publish("", name, b"12345")
        channel.basic_get(name, auto_ack=True)
        channel.basic_get(name)
        after = samples(http_broker.fetch("/metrics").text)
        grown = {key: after[key] - before[key] for key in after}
        assert grown["rabbitmq_queues"] == 1
        assert grown["rabbitmq_queue_messages_ready"] == 1
        assert grown["rabbitmq_queue_messages_unacked"] == 1
        assert grown["rabbitmq_queue_messages"] == 2
        assert grown["rabbitmq_queue_messages_ready_bytes"] == 5
        assert grown["rabbitmq_connections"] == 1
        assert grown["rabbitmq_channels"] == 1
        assert grown["rabbitmq_global_messages_received_total"] == 3
        assert grown["rabbitmq_global_messages_confirmed_total"] == 3
        assert grown["rabbitmq_global_messages_delivered_total"] == 2
        assert after["pandomq_messages_held"] >= 2
        assert after["pandomq_log_index"] > 0
        assert after["rabbitmq_process_resident_memory_bytes"] > 10_000_000
        assert after["rabbitmq_alarms_memory_used_watermark"] == 0
        wait_until(lambda: f'rabbitmq_queue_messages_ready{{vhost="/",queue="{name}"}} 1' in per_object(http_broker))
        each = per_object(http_broker)
        assert f'rabbitmq_queue_messages_published_total{{vhost="/",queue="{name}"}} 3' in each
        list(text_string_to_metric_families(each))
        channel.queue_delete(name)


def per_object(http_broker: HttpBroker) -> str:
    return http_broker.fetch("/metrics/per-object", auth=("guest", "guest")).text


def test_metrics_that_name_queues_need_a_login(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique()
    api.put(f"queues/%2F/{name}", json={})
    assert name not in http_broker.fetch("/metrics").text
    assert http_broker.fetch("/metrics/per-object").status_code == 401
    assert http_broker.fetch("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")
    api.delete(f"queues/%2F/{name}")


def test_staged_messages_that_no_queue_took_are_counted_for_their_query(http_broker: HttpBroker) -> None:
    query = unique()
    with DataClient(f"amqp://guest:guest@127.0.0.1:{http_broker.process.port}") as client:
        client.stage(query, 0, 0, "a", 0, frames("1", "2", key="nowhere"))
        assert client.commit(query, 0, [(0, "a", 1)]) == {"unroutable": 2}
    assert f'pandomq_staged_unroutable_total{{vhost="/",query="{query}"}} 2' in per_object(http_broker)
    everybody = http_broker.fetch("/metrics").text
    assert "pandomq_staged_unroutable_total 2" in everybody and query not in everybody


def test_the_overview(http_broker: HttpBroker, api: httpx.Client) -> None:
    shown = api.get("overview").json()
    assert (shown["product_name"], shown["product_version"]) == ("PandoMQ", __version__)
    # Management clients select their requests by this version; it is the one in the server properties.
    assert shown["rabbitmq_version"] == shown["management_version"] == RABBITMQ_VERSION
    assert (shown["node"], shown["cluster_name"]) == ("t", "t")
    assert {"direct", "fanout", "topic", "headers"} <= {kind["name"] for kind in shown["exchange_types"]}
    assert shown["queue_totals"].keys() >= {"messages", "messages_ready", "messages_unacknowledged"}
    assert shown["message_stats"]["publish_details"].keys() == {"rate"}
    assert shown["object_totals"].keys() == {"channels", "connections", "consumers", "exchanges", "queues"}
    listening = {(at["protocol"], at["port"]) for at in shown["listeners"]}
    assert listening >= {("amqp", http_broker.process.port), ("http", http_broker.http_port)}
    assert {protocol for protocol, _ in listening} == {"amqp", "data", "http"}


def test_the_cluster_of_one(http_broker: HttpBroker, api: httpx.Client) -> None:
    shown = api.get("cluster").json()
    assert (shown["root"], shown["alarms"], shown["version"]) == ("t", [], __version__)
    assert shown["kernel"] == ("plain" if os.environ.get("PANDOMQ_PLAIN") else "fast")
    [member] = shown["members"]
    assert (member["name"], member["role"], member["in_sync"], member["lag_bytes"]) == ("t", "root", True, 0)
    assert member["address"] == f"127.0.0.1:{http_broker.process.port}"
    assert member["log_index"] >= member["commit_index"] > 0
    assert api.get("cluster-name").json() == {"name": "t"}


def test_the_node(http_broker: HttpBroker, api: httpx.Client) -> None:
    [shown] = api.get("nodes").json()
    assert (shown["name"], shown["running"], shown["type"]) == ("t", True, "disc")
    assert shown["os_pid"] == str(http_broker.process.pid)
    assert shown["mem_used"] > 10_000_000
    assert (shown["mem_alarm"], shown["disk_free_alarm"]) == (False, False)
    assert 0 < shown["fd_used"] <= shown["fd_total"]
    assert api.get("nodes/t").json().keys() == shown.keys()
    assert api.get("nodes/other").status_code == 404


@pytest.mark.parametrize(
    "check",
    [
        "alarms",
        "local-alarms",
        "virtual-hosts",
        "is-in-service",
        "node-is-quorum-critical",
        "node-is-mirror-sync-critical",
        "protocol-listener/amqp",
        "protocol-listener/AMQP091",
        "protocol-listener/http",
    ],
)
def test_checks_that_are_fine(api: httpx.Client, check: str) -> None:
    answer = api.get(f"health/checks/{check}")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


def test_listeners_are_checked(http_broker: HttpBroker, api: httpx.Client) -> None:
    port = http_broker.process.port
    assert api.get(f"health/checks/port-listener/{port}").json() == {"status": "ok", "port": port}
    missing = api.get("health/checks/port-listener/1")
    assert missing.status_code == 503
    ports = sorted({at["port"] for at in api.get("overview").json()["listeners"]})
    assert {port, http_broker.http_port} < set(ports)
    assert missing.json() == {"status": "failed", "reason": "No active listener", "missing": 1, "ports": ports}
    assert api.get("health/checks/protocol-listener/mqtt").json()["protocols"] == ["amqp", "data", "http"]
    assert api.get("health/checks/port-listener/x").status_code == 400


def test_a_message_goes_through_a_vhost(api: httpx.Client) -> None:
    for _ in range(2):
        assert api.get("aliveness-test/%2F").json() == {"status": "ok"}
    api.delete("queues/%2F/aliveness-test")


def test_an_alarm_shows_everywhere(tmp_path: Path) -> None:
    broker = HttpBroker(tmp_path, "--memory-mb", "1")
    broker.start()
    try:
        api = broker.client()
        assert api.put("queues/%2F/q", json={}).status_code == 201
        body: dict[str, Any] = {"properties": {}, "routing_key": "q", "payload_encoding": "string"}
        answer = api.post("exchanges/%2F/amq.default/publish", json={**body, "payload": "x" * 2_000_000})
        assert answer.json() == {"routed": True}
        refused = api.post("exchanges/%2F/amq.default/publish", json={**body, "payload": "x"})
        assert (refused.status_code, refused.json()["error"]) == (503, "service_unavailable")
        check = api.get("health/checks/alarms")
        assert (check.status_code, check.json()["alarms"]) == (503, [{"node": "t", "resource": "memory"}])
        assert api.get("cluster").json()["alarms"] == ["memory"]
        assert api.get("nodes/t").json()["mem_alarm"] is True
        assert samples(broker.fetch("/metrics").text)["rabbitmq_alarms_memory_used_watermark"] == 1
        assert api.delete("queues/%2F/q/contents").status_code == 204
        assert api.get("health/checks/alarms").status_code == 200
    finally:
        broker.stop()


def test_a_disk_that_is_nearly_full_shows_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_LOG_FREE_BYTES_MIN", "1000TiB")
    broker = HttpBroker(tmp_path)
    broker.start()
    try:
        api = broker.client()
        deadline = time.monotonic() + 10
        while not api.get("cluster").json()["alarms"] and time.monotonic() < deadline:
            time.sleep(0.05)
        assert api.get("cluster").json()["alarms"] == ["disk"]
        assert api.get("health/checks/alarms").json()["alarms"] == [{"node": "t", "resource": "disk"}]
        assert api.get("nodes/t").json()["disk_free_alarm"] is True
        assert samples(broker.fetch("/metrics").text)["rabbitmq_alarms_free_disk_space_watermark"] == 1
    finally:
        broker.stop()
