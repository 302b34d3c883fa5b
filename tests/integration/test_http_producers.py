"""Producers that number their messages, over HTTP."""

from __future__ import annotations

import httpx
import pika
import pytest

from .http_broker import HttpBroker, escaped, unique
from .test_http_health import samples

pytestmark = pytest.mark.only_ours("RabbitMQ has no such thing")


@pytest.mark.proves("R25")
def test_named_producers_are_shown(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique()
    before = samples(http_broker.fetch("/metrics").text)
    with http_broker.amqp() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name)
        for number in (1, 2, 5, 5):
            headers = {"x-producer": f"{name} é", "x-sequence": number}
            channel.basic_publish("", name, b"x", pika.BasicProperties(headers=headers))
        shown = api.get(f"producers/%2F/{escaped(f'{name} é')}").json()
        assert (shown["vhost"], shown["name"], shown["last_sequence"]) == ("/", f"{name} é", 5)
        assert (shown["gaps"], shown["refused"], shown["forgotten_through"]) == (1, 0, -1)
        assert shown["connection"] in {row["name"] for row in api.get("connections").json()}
        assert shown["forgotten_at"] - shown["published_at"] == 24 * 3_600_000
        assert shown in api.get("producers/%2F").json()
        assert shown in api.get("producers").json()
        channel.queue_delete(name)
    assert api.get(f"producers/%2F/{escaped(f'{name} é')}").json()["connection"] is None
    assert api.get("producers/%2F/nobody").status_code == 404
    assert api.get("producers/nowhere").status_code == 404
    after = samples(http_broker.fetch("/metrics").text)
    assert after["pandomq_producers"] - before["pandomq_producers"] == 1
    assert after["pandomq_messages_duplicate_total"] - before["pandomq_messages_duplicate_total"] == 1
    assert (after["pandomq_producers_max"], after["pandomq_producer_age_seconds"]) == (10_000, 86_400)


def test_vhosts_of_others_are_not_shown(http_broker: HttpBroker, api: httpx.Client) -> None:
    vhost, user = unique(), unique()
    api.put(f"vhosts/{vhost}", json={})
    api.put(f"users/{user}", json={"password": "p", "tags": "management"})
    for name in ("guest", user):
        api.put(f"permissions/{vhost}/{name}", json={"configure": ".*", "write": ".*", "read": ".*"})
    with http_broker.amqp() as connection:
        headers = {"x-producer": vhost, "x-sequence": 1}
        connection.channel().basic_publish("", "nowhere", b"x", pika.BasicProperties(headers=headers))
        connection.process_data_events()
    theirs = http_broker.fetch("/api/producers", auth=(user, "p"))
    assert theirs.status_code == 200
    assert vhost not in theirs.text
    assert http_broker.fetch("/api/producers/%2F", auth=(user, "p")).status_code == 401
    api.delete(f"vhosts/{vhost}")
    api.delete(f"users/{user}")
