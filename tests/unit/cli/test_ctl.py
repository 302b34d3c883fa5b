"""rabbitmqctl's words."""

from __future__ import annotations

import json

import pytest

from pandomq.cli.ctl.words import WORDS, Word
from tests.unit.cli.conftest import Type
from tests.unit.cli.fake_api import FakeApi

QUEUES = [
    {"name": "a", "messages": 3, "consumers": 1, "vhost": "/"},
    {"name": "b", "messages": 0, "consumers": 0, "vhost": "/"},
]


def test_ctl_without_a_command_lists_the_commands(ask: Type, api: FakeApi) -> None:
    lines = ask("ctl").stdout.splitlines()
    assert "set_permissions USER CONFIGURE WRITE READ" in lines
    assert len(lines) == len(WORDS)
    assert api.requests == []


@pytest.mark.parametrize(
    "words",
    [
        ["list_queues", "name", "messages", "consumers"],
        ["-q", "list_queues", "-p", "/", "name", "messages", "consumers"],
        ["list_queues", "name", "messages", "consumers", "--quiet", "--vhost", "/"],
    ],
)
def test_queues_by_columns_as_rabbitmqctl_prints_them(ask: Type, api: FakeApi, words: list[str]) -> None:
    api.on("GET", "/api/queues/%2F", QUEUES)
    assert ask("ctl", *words).stdout == "name\tmessages\tconsumers\na\t3\t1\nb\t0\t0\n"


def test_formats(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/queues/%2F", QUEUES)
    assert ask("ctl", "-s", "list_queues").stdout == "a\t3\nb\t0\n"
    assert ask("ctl", "list_queues", "--no-table-headers", "name").stdout == "a\nb\n"
    assert ask("ctl", "list_queues", "--formatter", "csv").stdout == "name,messages\na,3\nb,0\n"
    expected = [{"name": "a", "messages": 3}, {"name": "b", "messages": 0}]
    assert json.loads(ask("ctl", "list_queues", "--formatter", "json").stdout) == expected
    assert json.loads(ask("ctl", "--json", "list_queues").stdout) == expected


def test_lists_have_rabbitmqctls_columns(ask: Type, api: FakeApi) -> None:
    binding = {"source": "e", "destination": "q", "destination_type": "queue", "routing_key": "k", "arguments": {}}
    api.on("GET", "/api/bindings/%2F", [binding])
    api.on("GET", "/api/users", [{"name": "guest", "tags": ["administrator", "x"]}, {"name": "u", "tags": []}])
    assert ask("ctl", "list_bindings").stdout.splitlines() == [
        "source_name\tsource_kind\tdestination_name\tdestination_kind\trouting_key\targuments",
        "e\texchange\tq\tqueue\tk\t{}",
    ]
    assert ask("ctl", "list_users").stdout == "user\ttags\nguest\t[administrator, x]\nu\t[]\n"


CHANGES = [
    ("forget_cluster_node n2", "DELETE /api/cluster/members/n2", None),
    ("delete_user bob", "DELETE /api/users/bob", None),
    (
        "set_permissions bob ^a ^b ^c -p v",
        "PUT /api/permissions/v/bob",
        {"configure": "^a", "write": "^b", "read": "^c"},
    ),
    ("clear_permissions bob", "DELETE /api/permissions/%2F/bob", None),
    (
        "set_topic_permissions bob e ^b ^c",
        "PUT /api/topic-permissions/%2F/bob",
        {"exchange": "e", "write": "^b", "read": "^c"},
    ),
    ("clear_topic_permissions bob", "DELETE /api/topic-permissions/%2F/bob", None),
    (
        "set_policy p ^a {} --priority 4 --apply-to queues",
        "PUT /api/policies/%2F/p",
        {"pattern": "^a", "definition": {}, "priority": 4, "apply-to": "queues"},
    ),
    ("clear_policy p", "DELETE /api/policies/%2F/p", None),
    (
        "set_operator_policy p ^a {}",
        "PUT /api/operator-policies/%2F/p",
        {"pattern": "^a", "definition": {}, "priority": 0, "apply-to": "queues"},
    ),
    ("clear_operator_policy p", "DELETE /api/operator-policies/%2F/p", None),
    ("delete_vhost v", "DELETE /api/vhosts/v", None),
    ("purge_queue q -p v", "DELETE /api/queues/v/q/contents", None),
    ("delete_queue q", "DELETE /api/queues/%2F/q", None),
    ("delete_queue q --if-empty --if-unused", "DELETE /api/queues/%2F/q?if-empty=true&if-unused=true", None),
    ("close_connection c bye", "DELETE /api/connections/c", None),
]


@pytest.mark.parametrize(("words", "request_line", "body"), CHANGES, ids=[words for words, _, _ in CHANGES])
def test_changes(ask: Type, api: FakeApi, words: str, request_line: str, body: object) -> None:
    method, target = request_line.split(" ")
    api.on(method, target, status=204)
    assert ask("ctl", *words.split()).exit_code == 0
    assert api.asked == [request_line]
    assert api.requests[0].body == body


def test_add_user_takes_a_password_from_standard_input_or_as_rabbitmqctl_does(ask: Type, api: FakeApi) -> None:
    api.on("PUT", "/api/users/ann", status=201)
    assert ask("ctl", "add_user", "ann", stdin="hush\n").exit_code == 0
    assert ask("ctl", "add_user", "ann", "loud").exit_code == 0
    bodies = [request.body for request in api.requests if request.method == "PUT"]
    assert bodies == [{"password": "hush", "tags": ""}, {"password": "loud", "tags": ""}]


def test_authenticate_user_asks_in_that_users_name(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/whoami", {"name": "a:/b"})
    assert ask("ctl", "authenticate_user", "a/b", "p@:/ ss").exit_code == 0
    assert api.requests[0].login == "a/b:p@:/ ss"


def test_close_all_connections_of_a_vhost(ask: Type, api: FakeApi) -> None:
    names = ["127.0.0.1:1 -> 127.0.0.1:2", "b"]
    api.on("GET", "/api/vhosts/%2F/connections", [{"name": name} for name in names])
    api.on("DELETE", "/api/connections/127.0.0.1%3A1%20-%3E%20127.0.0.1%3A2", status=204)
    api.on("DELETE", "/api/connections/b", status=204)
    assert ask("ctl", "close_all_connections", "maintenance").exit_code == 0
    assert [request.headers.get("X-Reason") for request in api.requests] == [None, "maintenance", "maintenance"]


def test_await_startup_gives_up_in_time(type_: Type) -> None:
    result = type_("ctl", "await_startup", "-t", "0.1", url="http://127.0.0.1:1")
    assert result.exit_code == 3


@pytest.mark.parametrize(
    ("usage", "takes"),
    [("", {0}), ("USER", {1}), ("USER [PASSWORD]", {1, 2}), ("[COLUMN]…", {0, 1, 2, 3}), ("USER [TAG]…", {1, 2, 3})],
)
def test_the_number_of_arguments_follows_from_the_usage(usage: str, takes: set[int]) -> None:
    word = Word(usage, lambda order: None)
    assert {count for count in range(4) if word.takes(count)} == takes


@pytest.mark.parametrize(
    ("word", "advice"),
    [("list_queus", "did you mean list_queues?"), ("environment", "pandomq config"), ("reset", "`pandomq ctl` lists")],
)
def test_an_unknown_command_is_answered_with_a_likely_one(ask: Type, word: str, advice: str) -> None:
    result = ask("ctl", word)
    assert result.exit_code == 2
    assert advice in result.stderr
