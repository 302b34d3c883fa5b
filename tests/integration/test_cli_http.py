"""The command line against a real broker's HTTP API, from an empty broker to a configured one."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from typer.testing import CliRunner, Result

from pandomq.cli.main import app
from pandomq.cli.output import cell
from tests.integration.watched_broker import WatchedBroker
from tests.support.ports import free_port

pytestmark = pytest.mark.only_ours("a broker of its own, with users of its own")

HOSTILE = ["a/b %2F", "..", "NUL\0NUL", "line\r\nbreak", "\x1b]0;owned\x07", "\u202eünï 🐇", "x" * 255, "[bold]", "?#&"]
PATIENCE_S = 40.0

Ask = Callable[..., Result]


class BrokerWithHttp(WatchedBroker):
    def __init__(self, directory: Path) -> None:
        self.http_port = free_port()
        super().__init__(directory, "--http", f"127.0.0.1:{self.http_port}")

    def http_url(self, user: str = "guest", password: str = "guest") -> str:
        return f"http://{user}:{password}@127.0.0.1:{self.http_port}"

    def connect(self, user: str = "guest", password: str = "guest", vhost: str = "/") -> pika.BlockingConnection:
        credentials = pika.PlainCredentials(user, password)
        return pika.BlockingConnection(
            pika.ConnectionParameters("127.0.0.1", self.port, vhost, credentials=credentials)
        )


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerWithHttp]:
    broker = BrokerWithHttp(tmp_path_factory.mktemp("steered"))
    broker.start()
    yield broker
    broker.check()
    broker.stop()


@pytest.fixture
def ask(steered: BrokerWithHttp, monkeypatch: pytest.MonkeyPatch) -> Ask:
    runner = CliRunner()

    def run(
        *words: str, user: str = "guest", password: str = "guest", stdin: str | None = None, code: int = 0
    ) -> Result:
        result = runner.invoke(app, list(words), input=stdin, env={"PANDOMQ_URL": steered.http_url(user, password)})
        assert result.exit_code == code, f"{words}: {result.output}"
        return result

    return run


def rows(result: Result) -> list[list[str]]:
    return [line.split("\t") for line in result.stdout.splitlines()[1:]]


def test_status_has_the_fields_of_the_design(ask: Ask, steered: BrokerWithHttp) -> None:
    status = json.loads(ask("status", "--json").stdout)
    assert {"cluster", "term", "root", "members", "alarms", "kernel", "version"} <= status.keys()
    (member,) = status["members"]
    assert (member["name"], member["role"], member["in_sync"]) == ("t", "root", True)
    assert {"address", "log_index", "commit_index", "lag_bytes"} <= member.keys()
    lines = ask("status").stdout.splitlines()
    assert status["version"] in lines[0]
    assert lines[-1].split("\t")[:2] == ["t", "root"]
    assert ask("ctl", "ping").stdout == "Ping succeeded\n"


def test_lists_show_the_objects_of_clients(ask: Ask, steered: BrokerWithHttp) -> None:
    with steered.connect() as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True, arguments={"x-max-length": 1000})
        channel.queue_bind("orders", "amq.topic", "a.#")
        channel.basic_qos(prefetch_count=2)
        for _ in range(5):
            channel.basic_publish("amq.topic", "a.b", b"x")
        channel.basic_consume("orders", lambda *_: None, consumer_tag="tag")
        connection.process_data_events(0.2)
        until(lambda: rows(ask("queues", "--columns", "name,ready,unacked,consumers")), [["orders", "3", "2", "1"]])
        assert ["/", "amq.topic", "a.#", "queue", "orders", "{}"] in rows(ask("bindings"))
        assert ["/", "amq.topic", "topic", "true", "false", "false", "", "{}"] in rows(ask("exchanges", "-p", "/"))
        assert [row[:2] for row in rows(ask("consumers", "--columns", "queue,tag,active"))] == [["orders", "tag"]]
        (client,) = rows(ask("connections", "--columns", "name,user,vhost,state,tls,channels"))
        assert client[1:] == ["guest", "/", "running", "false", "1"]
        (line,) = rows(ask("channels", "--columns", "connection,prefetch,consumers,unacked"))
        assert line == [client[0], "2", "1", "2"]
        look = json.loads(ask("top", "--count", "1", "--json").stdout)
        assert look["totals"]["connections"] == 1
        assert look["queues"][0]["name"] == "orders"
    ask("ctl", "purge_queue", "orders")
    until(lambda: ask("ctl", "-q", "list_queues", "name", "messages").stdout, "name\tmessages\norders\t0\n")
    ask("ctl", "delete_queue", "orders")
    until(lambda: rows(ask("queues")), [])


def test_a_connection_is_closed_with_a_reason(ask: Ask, steered: BrokerWithHttp) -> None:
    connection = steered.connect()
    until(lambda: len(rows(ask("connections"))), 1)
    ((name,),) = rows(ask("connections", "--columns", "name"))
    ask("ctl", "close_connection", name, "tidying up")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="tidying up"):
        connection.process_data_events(PATIENCE_S)
    assert "does not exist" in ask("ctl", "close_connection", name, "again", code=1).stderr


def test_a_user_from_nothing_to_rights_and_back(ask: Ask, steered: BrokerWithHttp) -> None:
    ask("users", "add", "ann", "--tags", "management", stdin="first\n")
    assert "exists already" in ask("users", "add", "ann", stdin="x\n", code=1).stderr
    assert ["ann", "management"] in rows(ask("users", "list"))
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError):
        steered.connect("ann", "first")
    ask("permissions", "set", "ann", "^ann", "", ".*")
    assert ["/", "ann", "^ann", "", ".*"] in rows(ask("permissions", "list", "-p", "/"))
    with steered.connect("ann", "first") as connection:
        connection.channel().queue_declare("ann.queue", exclusive=True)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"):
            connection.channel().queue_declare("other", exclusive=True)
    ask("users", "password", "ann", stdin="second\n")
    ask("queues", user="ann", password="second")
    assert "refused user 'ann'" in ask("queues", user="ann", password="first", code=1).stderr
    assert ["ann", "management"] in rows(ask("users", "list"))
    ask("users", "tags", "ann", "monitoring")
    ask("ctl", "authenticate_user", "ann", stdin="second\n")
    assert ["ann", "monitoring"] in rows(ask("users", "list"))
    ask("users", "list", user="ann", password="second", code=1)
    ask("permissions", "topic", "set", "ann", "amq.topic", "^a", ".*")
    assert ["/", "ann", "amq.topic", "^a", ".*"] in rows(ask("permissions", "topic", "list"))
    ask("permissions", "topic", "clear", "ann")
    ask("permissions", "clear", "ann")
    assert rows(ask("ctl", "list_user_permissions", "ann")) == []
    ask("users", "delete", "ann")
    assert "user 'ann' does not exist" in ask("users", "delete", "ann", code=1).stderr


def test_policies_hold_at_once(ask: Ask, steered: BrokerWithHttp) -> None:
    with steered.connect() as connection:
        channel = connection.channel()
        channel.queue_declare("tmp.ring")
        ask("policies", "set", "short", "^tmp\\.", '{"max-length": 2}', "--priority", "1", "--apply-to", "queues")
        for _ in range(5):
            channel.basic_publish("", "tmp.ring", b"x")
        until(lambda: rows(ask("queues", "--columns", "name,policy,messages")), [["tmp.ring", "short", "2"]])
        assert rows(ask("policies", "list")) == [["/", "short", "^tmp\\.", "queues", "1", '{"max-length":2}']]
        ask("policies", "set", "bad", "(", "{}", code=1)
        ask("policies", "set", "bad", "^", '{"no-such-key": 1}', code=1)
        ask("policies", "set", "bound", "^tmp\\.", '{"max-length": 1}', "--operator")
        assert [row[1] for row in rows(ask("policies", "list", "--operator"))] == ["bound"]
        ask("policies", "clear", "bound", "--operator")
        ask("policies", "clear", "short")
        channel.queue_delete("tmp.ring")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_through_the_command_line(ask: Ask, steered: BrokerWithHttp, name: str) -> None:
    ask("vhosts", "add", "--", name)
    ask("ctl", "set_permissions", "-p", name, "--", "guest", ".*", ".*", ".*")
    # Line ends are taken out of queues' names, as RabbitMQ does, and then pika would wait for another name's answer.
    queue = name.replace("\r", "").replace("\n", "")
    with steered.connect(vhost=name) as connection:
        connection.channel().queue_declare(queue)
        until(lambda: names(ask("queues", "--json", "--vhost", name)), [queue])
        assert rows(ask("queues", "--vhost", name, "--columns", "vhost,name")) == [[cell(name), cell(queue)]]
        ask("ctl", "delete_queue", "-p", name, "--", queue)
        until(lambda: names(ask("queues", "--json", "--vhost", name)), [])
    ask("vhosts", "delete", "--", name)
    assert name not in names(ask("vhosts", "list", "--json"))


def test_a_pipe_that_is_not_read_to_its_end(steered: BrokerWithHttp) -> None:
    import subprocess

    command = f"{sys.executable} -m pandomq.cli.main exchanges --url {steered.http_url()} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.startswith("vhost\t")
    assert "Traceback" not in done.stderr


def names(result: Result) -> list[Any]:
    return [item["name"] for item in json.loads(result.stdout)]


def until(read: Callable[[], object], expected: object) -> None:
    """Lists may be a moment old, because all clients share them."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := read()) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
