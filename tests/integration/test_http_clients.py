"""Connections, channels and consumers over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from pika.exceptions import ConnectionClosedByBroker

from .http_broker import HttpBroker, escaped, unique
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")


def only_connection(api: httpx.Client, name: str) -> dict[str, Any]:
    """Returns the only connection that its client named so. A listing may be some moments old."""
    rows: list[dict[str, Any]] = []

    def is_listed() -> bool:
        rows[:] = [row for row in api.get("connections").json() if row.get("user_provided_name") == name]
        return bool(rows)

    wait_until(is_listed)
    assert len(rows) == 1
    return rows[0]


def test_a_connection_shows_its_user_and_the_agreed_limits(http_broker: HttpBroker, api: httpx.Client) -> None:
    mine = unique("connection")
    with http_broker.amqp(name=mine) as connection:
        connection.channel()
        shown = only_connection(api, mine)
        assert shown["name"] == f"127.0.0.1:{shown['peer_port']} -> 127.0.0.1:{http_broker.process.port}"
        assert (shown["user"], shown["vhost"], shown["state"], shown["channels"]) == ("guest", "/", "running", 1)
        assert (shown["host"], shown["port"]) == ("127.0.0.1", http_broker.process.port)
        assert (shown["protocol"], shown["auth_mechanism"], shown["type"]) == ("AMQP 0-9-1", "PLAIN", "network")
        assert (shown["channel_max"], shown["frame_max"], shown["timeout"], shown["ssl"]) == (2047, 131072, 60, False)
        assert shown["client_properties"]["product"] == "Pika Python Client Library"
        assert shown["recv_oct"] > 100 and shown["send_oct"] > 100
        alone = api.get(f"connections/{escaped(shown['name'])}").json()
        assert alone.keys() == shown.keys()
    wait_until(lambda: api.get(f"connections/{escaped(shown['name'])}").status_code == 404)


def test_channels_and_consumers_of_a_connection(http_broker: HttpBroker, api: httpx.Client) -> None:
    queue = unique()
    mine = unique("connection")
    with http_broker.amqp(name=mine) as connection:
        first, second = connection.channel(), connection.channel()
        first.confirm_delivery()
        second.tx_select()
        second.basic_qos(prefetch_count=7, global_qos=True)
        first.basic_qos(prefetch_count=5)
        first.queue_declare(queue)
        first.basic_consume(queue, lambda *_: None, consumer_tag="tag", exclusive=True)
        name = only_connection(api, mine)["name"]
        channels = {row["number"]: row for row in api.get(f"connections/{escaped(name)}/channels").json()}
        assert channels.keys() == {1, 2}
        assert channels[1]["name"] == f"{name} (1)"
        assert channels[1]["connection_details"]["name"] == name
        assert [channels[n]["confirm"] for n in (1, 2)] == [True, False]
        assert [channels[n]["transactional"] for n in (1, 2)] == [False, True]
        assert [channels[n]["consumer_count"] for n in (1, 2)] == [1, 0]
        assert channels[1]["prefetch_count"] == 5
        assert channels[2]["global_prefetch_count"] == 7
        alone = api.get(f"channels/{escaped(f'{name} (1)')}").json()
        assert alone.keys() >= channels[1].keys() | {"consumer_details", "publishes", "deliveries"}
        [consumer] = [row for row in api.get("consumers").json() if row["queue"]["name"] == queue]
        assert alone["consumer_details"] == [consumer]
        assert consumer["channel_details"]["connection_name"] == name
        assert (consumer["consumer_tag"], consumer["exclusive"]) == ("tag", True)
        assert consumer in api.get("consumers/%2F").json()
        assert {row["name"] for row in channels.values()} <= {row["name"] for row in api.get("channels").json()}
        assert api.get(f"queues/%2F/{queue}").json()["exclusive_consumer_tag"] == "tag"
        first.queue_delete(queue)
    for missing in ("channels/nosuch", "connections/nosuch", "consumers/nosuch", "connections/nosuch/channels"):
        assert api.get(missing).status_code == 404


def test_an_administrator_closes_a_connection_with_a_reason(http_broker: HttpBroker, api: httpx.Client) -> None:
    mine = unique("connection")
    with http_broker.amqp(name=mine) as connection:
        connection.channel()
        path = f"connections/{escaped(only_connection(api, mine)['name'])}"
        assert api.delete(path, headers={"X-Reason": "go away please"}).status_code == 204
        with pytest.raises(ConnectionClosedByBroker) as closed:
            connection.process_data_events(time_limit=10)
        assert (closed.value.reply_code, closed.value.reply_text) == (320, "CONNECTION_FORCED - go away please")
        wait_until(lambda: api.delete(path).status_code == 404)


def test_a_reason_in_utf8_and_one_that_is_too_long(http_broker: HttpBroker, api: httpx.Client) -> None:
    for reason, heard in (("grüße", "grüße"), ("x" * 4000, "x" * 200)):
        mine = unique("connection")
        with http_broker.amqp(name=mine) as connection:
            path = f"connections/{escaped(only_connection(api, mine)['name'])}"
            api.delete(path, headers={b"X-Reason": reason.encode()})
            with pytest.raises(ConnectionClosedByBroker) as closed:
                connection.process_data_events(time_limit=10)
            assert heard in closed.value.reply_text


def test_requests_over_http_are_no_connections(http_broker: HttpBroker, api: httpx.Client) -> None:
    before = len(api.get("connections").json())
    name = unique()
    api.put(f"queues/%2F/{name}", json={})
    api.delete(f"queues/%2F/{name}")
    assert len(api.get("connections").json()) == before
    assert api.get("overview").json()["object_totals"]["connections"] == before


def test_all_connections_of_a_user(http_broker: HttpBroker, api: httpx.Client) -> None:
    user = unique("u")
    api.put(f"users/{user}", json={"password": "pw", "tags": ""})
    api.put(f"permissions/%2F/{user}", json={"configure": "", "write": "", "read": ""})
    with http_broker.amqp(user, "pw") as first, http_broker.amqp(user, "pw") as second:
        rows = api.get(f"connections/username/{user}").json()
        assert [(row["user"], row["vhost"], row["node"]) for row in rows] == [(user, "/", "t")] * 2
        assert api.delete(f"connections/username/{user}").status_code == 204
        for connection in (first, second):
            with pytest.raises(ConnectionClosedByBroker, match="Closed via management plugin"):
                connection.process_data_events(time_limit=10)
    api.delete(f"users/{user}")
