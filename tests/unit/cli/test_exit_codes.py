"""How commands end: 0, 1 when a broker refuses, 2 for wrong use, 3 when no broker answers; and with which words."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pandomq.cli import api as api_module
from tests.unit.cli.conftest import Type
from tests.unit.cli.fake_api import FakeApi

COMMANDS = [
    ["status"],
    ["queues"],
    ["exchanges"],
    ["bindings"],
    ["connections"],
    ["channels"],
    ["consumers"],
    ["top", "--count", "1"],
    ["users", "list"],
    ["users", "delete", "u"],
    ["users", "tags", "u"],
    ["vhosts", "list"],
    ["vhosts", "add", "v"],
    ["vhosts", "delete", "v"],
    ["permissions", "list"],
    ["permissions", "set", "u", ".*", ".*", ".*"],
    ["permissions", "clear", "u"],
    ["permissions", "topic", "list"],
    ["permissions", "topic", "set", "u", "e", ".*", ".*"],
    ["permissions", "topic", "clear", "u"],
    ["policies", "list"],
    ["policies", "set", "p", "^", "{}"],
    ["policies", "clear", "p", "--operator"],
    ["definitions", "export"],
    ["ctl", "list_queues"],
    ["ctl", "status"],
]


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def listening(greeting: bytes) -> Iterator[int]:
    """Something that accepts, says that, and hangs up; or says nothing at all."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer:
            peer.recv(65536)
            if greeting:
                peer.sendall(greeting)
            else:
                peer.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.close()
    thread.join(5)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_a_broker_every_command_names_the_url_and_a_remedy(type_: Type, words: list[str]) -> None:
    port = unused_port()
    result = type_(*words, url=f"http://user:hush@127.0.0.1:{port}")
    assert result.exit_code == 3
    assert f"no broker responds at http://127.0.0.1:{port} (Connection refused)" in result.stderr
    assert "pandomq start" in result.stderr
    assert "--url" in result.stderr
    assert "hush" not in result.output
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_refused_login_ends_every_command_with_the_brokers_reason(
    ask: Type, api: FakeApi, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    refusal = (401, b'{"error":"not_authorized","reason":"Login failed"}', "application/json")
    monkeypatch.setattr(api, "answer", lambda request: refusal)
    result = ask(*words, url=f"http://ann:hush@127.0.0.1:{api.port}")
    assert result.exit_code == 1
    assert f"http://127.0.0.1:{api.port} refused user 'ann': Login failed." in result.stderr
    assert "hush" not in result.output


def test_the_brokers_reason_comes_out_on_one_line(ask: Type, api: FakeApi) -> None:
    reason = "Validation failed\n\nx is not recognised\x1b[31m\n"
    api.on("PUT", "/api/policies/%2F/p", {"error": "bad_request", "reason": reason}, status=400)
    result = ask("policies", "set", "p", "^", "{}")
    assert result.exit_code == 1
    assert result.stderr == "pandomq: Validation failed x is not recognised\\x1b[31m\n"


def test_a_missing_object_is_named(ask: Type) -> None:
    result = ask("users", "delete", "nobody")
    assert result.exit_code == 1
    assert result.stderr == "pandomq: user 'nobody' does not exist; `pandomq users list` lists the existing ones\n"


def test_a_grant_names_the_vhost_and_the_user_of_which_one_is_missing(ask: Type, api: FakeApi) -> None:
    path = "/api/permissions/nov/ann"
    api.on("PUT", path, {"error": "bad_request", "reason": "vhost_or_user_not_found"}, status=400)
    result = ask("permissions", "set", "ann", "", "", "", "-p", "nov")
    assert result.exit_code == 1
    assert "vhost 'nov' or user 'ann' does not exist" in result.stderr
    assert "`pandomq vhosts list`" in result.stderr


def test_the_events_of_one_world_need_its_seed(type_: Type) -> None:
    result = type_("sim", "--explain")
    assert result.exit_code == 2
    assert "give its --seed" in result.stderr


def test_an_error_without_a_reason_is_shown_by_its_name(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/queues", {"error": "not_authorised"}, status=403)
    assert ask("queues").stderr == "pandomq: not_authorised\n"


@pytest.mark.parametrize("status", [200, 404, 500])
def test_another_web_server_is_no_broker(ask: Type, api: FakeApi, status: int) -> None:
    api.on_bytes("GET", "/api/queues", b"<html>It works!</html>", status)
    result = ask("queues")
    assert result.exit_code == 3
    assert "does not serve a broker's HTTP API" in result.stderr


def test_the_amqp_port_is_recognised(type_: Type) -> None:
    with listening(b"AMQP\x00\x00\x09\x01") as port:
        result = type_("queues", url=f"http://127.0.0.1:{port}")
    assert result.exit_code == 3
    assert "is it the AMQP port?" in result.stderr


def test_a_silent_broker_is_given_up(type_: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "TIMEOUT_S", 0.2)
    with listening(b"") as port:
        result = type_("queues", url=f"http://127.0.0.1:{port}")
    assert result.exit_code == 3
    assert "no response for" in result.stderr


def test_an_answer_without_end_is_refused(ask: Type, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "RESPONSE_BYTES_MAX", 10)
    api.on("GET", "/api/queues", ["x" * 100])
    result = ask("queues")
    assert result.exit_code == 1
    assert "larger than 10 bytes" in result.stderr


def test_a_name_that_does_not_resolve(type_: Type) -> None:
    result = type_("queues", url="http://no-such-host.invalid:15672")
    assert result.exit_code == 3
    assert "no broker responds at http://no-such-host.invalid:15672 (" in result.stderr


@pytest.mark.parametrize(
    "url", ["amqp://localhost:5672", "localhost:15672", "http://", "http://h:port", "http://h/?x=1"]
)
def test_a_url_that_is_none_is_wrong_use(type_: Type, url: str) -> None:
    result = type_("queues", url=url)
    assert result.exit_code == 2
    assert result.stderr.startswith("pandomq: ")
    assert result.stderr.count("\n") == 1


def test_a_url_without_password_needs_a_terminal(type_: Type) -> None:
    result = type_("queues", url="http://ann@127.0.0.1:1")
    assert result.exit_code == 2
    assert "has no password for user ann" in result.stderr


def test_the_url_may_be_in_a_file(type_: Type, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "url").write_text(f"http://ann:p%40ss@127.0.0.1:{api.port}/\n")
    monkeypatch.setenv("PANDOMQ_URL_FILE", str(tmp_path / "url"))
    api.on("GET", "/api/users", [])
    assert type_("users", "list").exit_code == 0
    assert api.requests[0].login == "ann:p@ss"


def test_a_path_before_the_api_is_kept(type_: Type, api: FakeApi) -> None:
    api.on("GET", "/behind/proxy/api/users", [])
    assert type_("users", "list", url=f"{api.url}/behind/proxy/").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["queues", "--nonsense"],
        ["users"],
        ["users", "add"],
        ["permissions", "set", "u"],
        ["policies", "set", "p", "^", "[1]"],
        ["policies", "set", "p", "^", "{"],
        ["definitions", "import", "absent.json"],
        ["top", "--sort", "colour"],
        ["top", "--interval", "0"],
        ["ctl", "list_queus"],
        ["ctl", "add_user"],
        ["ctl", "add_user", "a", "b", "c"],
        ["ctl", "list_users", "name"],
        ["ctl", "environment"],
        ["ctl", "list_queues", "--formatter", "xml"],
        ["start", "--listen", "nowhere"],
        ["config", "--log-level", "loud"],
    ],
    ids=" ".join,
)
def test_wrong_use_ends_with_2_and_asks_no_broker(ask: Type, api: FakeApi, words: list[str]) -> None:
    result = ask(*words)
    assert result.exit_code == 2
    assert api.requests == []
