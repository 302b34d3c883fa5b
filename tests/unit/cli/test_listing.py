"""Lists: paths, columns, JSON as it came."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Type
from tests.unit.cli.fake_api import FakeApi

QUEUE = {
    "vhost": "/",
    "name": "orders",
    "type": "classic",
    "durable": True,
    "messages": 12,
    "messages_ready": 10,
    "messages_unacknowledged": 2,
    "consumers": 1,
    "arguments": {"x-max-length": 1000},
    "message_stats": {"publish": 5, "publish_details": {"rate": 2.5}},
}


@pytest.mark.parametrize(
    ("command", "of_all", "of_vhost"),
    [
        ("queues", "/api/queues", "/api/queues/%2F"),
        ("exchanges", "/api/exchanges", "/api/exchanges/%2F"),
        ("bindings", "/api/bindings", "/api/bindings/%2F"),
        ("consumers", "/api/consumers", "/api/consumers/%2F"),
        ("connections", "/api/connections", "/api/vhosts/%2F/connections"),
        ("channels", "/api/channels", "/api/vhosts/%2F/channels"),
        ("permissions list", "/api/permissions", "/api/vhosts/%2F/permissions"),
        ("permissions topic list", "/api/topic-permissions", "/api/vhosts/%2F/topic-permissions"),
        ("policies list", "/api/policies", "/api/policies/%2F"),
        ("policies list --operator", "/api/operator-policies", "/api/operator-policies/%2F"),
    ],
)
def test_lists_of_all_and_of_a_vhost_have_rabbitmqs_paths(
    ask: Type, api: FakeApi, command: str, of_all: str, of_vhost: str
) -> None:
    api.on("GET", of_all, [])
    api.on("GET", of_vhost, [])
    assert ask(*command.split()).exit_code == 0
    assert ask(*command.split(), "--vhost", "/").exit_code == 0
    assert api.asked == [f"GET {of_all}", f"GET {of_vhost}"]
    assert {request.login for request in api.requests} == {"guest:guest"}


def test_a_table_for_a_pipe_has_tabs(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/queues", [QUEUE, {"vhost": "/", "name": "new"}])
    lines = ask("queues").stdout.splitlines()
    assert lines[0].split("\t") == [
        "vhost", "name", "type", "policy", "ready", "unacked", "messages", "consumers", "in/s", "out/s"
    ]  # fmt: skip
    assert lines[1].split("\t") == ["/", "orders", "classic", "", "10", "2", "12", "1", "2.5", ""]
    assert lines[2].split("\t") == ["/", "new", "", "", "", "", "", "", "", ""]


def test_columns_are_those_that_were_asked_for(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/queues", [QUEUE])
    result = ask("queues", "--columns", "name,durable,arguments,message_stats.publish")
    assert result.stdout.splitlines()[1].split("\t") == ["orders", "true", '{"x-max-length":1000}', "5"]


def test_an_unknown_column_is_wrong_use(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/queues", [QUEUE])
    result = ask("queues", "--columns", "nome")
    assert result.exit_code == 2
    assert "nome is not a column of queues. Known: arguments," in result.stderr


def test_streams_are_some_of_the_queues(ask: Type, api: FakeApi) -> None:
    stream = {"vhost": "/", "name": "s", "type": "stream", "first_offset": 5, "committed_offset": 9, "messages": 5}
    api.on("GET", "/api/queues", [QUEUE, stream])
    _, *lines = ask("streams").stdout.splitlines()
    assert [line.split("\t")[:6] for line in lines] == [["/", "s", "", "5", "9", "5"]]
    assert json.loads(ask("streams", "--json").stdout) == [stream]


def test_json_is_the_brokers_answer(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/queues", [QUEUE])
    assert json.loads(ask("queues", "--json").stdout) == [QUEUE]
    assert json.loads(ask("queues", "--json", "--columns", "name,ready").stdout) == [{"name": "orders", "ready": 10}]


def test_an_empty_list_has_its_headers(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/consumers", [])
    assert ask("consumers").stdout.startswith("vhost\tqueue\ttag\t")


def test_consumers_are_listed_with_their_queue(ask: Type, api: FakeApi) -> None:
    consumer = {
        "queue": {"vhost": "/", "name": "orders"},
        "consumer_tag": "ctag1",
        "channel_details": {"name": "127.0.0.1:1 -> 127.0.0.1:2 (1)"},
        "ack_required": True,
        "prefetch_count": 10,
        "exclusive": False,
        "active": True,
        "arguments": {},
    }
    api.on("GET", "/api/consumers", [consumer])
    cells = ask("consumers").stdout.splitlines()[1].split("\t")
    assert cells == ["/", "orders", "ctag1", "127.0.0.1:1 -> 127.0.0.1:2 (1)", "true", "10", "false", "true", "{}"]


STATUS = {
    "cluster": "6f1a",
    "term": 3,
    "root": "n1",
    "members": [
        {"name": "n1", "role": "root", "address": "127.0.0.1:5672", "in_sync": True, "log_index": 9, "commit_index": 9,
         "lag_bytes": 0, "connections": 4}
    ],
    "alarms": ["memory"],
    "kernel": "fast",
    "version": "0.1.0",
}  # fmt: skip


def test_status_names_members_and_alarms(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/cluster", STATUS)
    lines = ask("status").stdout.splitlines()
    assert lines[0] == f"PandoMQ 0.1.0 at http://127.0.0.1:{api.port}, kernel: fast"
    assert lines[1:3] == ["cluster 6f1a, term 3, root n1", "ALARM memory"]
    assert lines[4].split("\t") == ["n1", "root", "127.0.0.1:5672", "true", "9", "9", "0"]
    assert json.loads(ask("status", "--json").stdout) == STATUS


def test_status_shows_when_there_is_no_root(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/cluster", {**STATUS, "root": None})
    assert "no root" in ask("status").stdout
