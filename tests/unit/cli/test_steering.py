"""Commands that change something: what they send, and that no password is ever on the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Type
from tests.unit.cli.fake_api import FakeApi

BOB = {
    "name": "bob",
    "password_hash": "h4sh",
    "hashing_algorithm": "rabbit_password_hashing_sha256",
    "tags": ["management"],
}


@pytest.fixture
def bob(api: FakeApi) -> None:
    api.on("GET", "/api/users/bob", BOB)
    api.on("PUT", "/api/users/bob", status=204)
    api.on("DELETE", "/api/users/bob", status=204)


def test_a_password_comes_from_standard_input(ask: Type, api: FakeApi) -> None:
    api.on("PUT", "/api/users/ann", status=201)
    result = ask("users", "add", "ann", "--tags", "monitoring, management", stdin="hush hush\nmore\n")
    assert result.exit_code == 0
    assert api.requests[-1].body == {"password": "hush hush", "tags": "monitoring,management"}
    assert "hush" not in result.output


@pytest.mark.parametrize("written", ["hush", "hush\n", "hush\r\n"])
def test_a_password_comes_from_a_file(ask: Type, api: FakeApi, tmp_path: Path, written: str) -> None:
    api.on("PUT", "/api/users/ann", status=201)
    (tmp_path / "secret").write_bytes(written.encode())
    assert ask("users", "add", "ann", "--password-file", str(tmp_path / "secret")).exit_code == 0
    assert api.requests[-1].body == {"password": "hush", "tags": ""}


@pytest.mark.parametrize("stdin", ["", "\n"])
def test_no_password_is_wrong_use(ask: Type, api: FakeApi, stdin: str) -> None:
    assert ask("users", "add", "ann", stdin=stdin).exit_code == 2
    assert ask("users", "add", "ann", "--password-file", "absent").exit_code == 2
    assert api.requests == []


@pytest.mark.usefixtures("bob")
def test_a_user_that_exists_is_not_overwritten(ask: Type, api: FakeApi) -> None:
    result = ask("users", "add", "bob", stdin="x\n")
    assert result.exit_code == 1
    assert result.stderr.startswith("pandomq: user 'bob' exists already: change it with `pandomq users password`")
    assert api.asked == ["GET /api/users/bob"]


@pytest.mark.usefixtures("bob")
def test_another_password_keeps_the_tags(ask: Type, api: FakeApi) -> None:
    assert ask("users", "password", "bob", stdin="new\n").exit_code == 0
    assert api.requests[-1].body == {"password": "new", "tags": "management"}


@pytest.mark.usefixtures("bob")
def test_other_tags_keep_the_password(ask: Type, api: FakeApi) -> None:
    assert ask("users", "tags", "bob", "administrator", "monitoring").exit_code == 0
    assert api.requests[-1].body == {
        "password_hash": "h4sh",
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": "administrator,monitoring",
    }
    assert ask("users", "tags", "bob").exit_code == 0
    assert api.requests[-1].body["tags"] == ""


def test_users_are_listed_without_their_hashes(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/users", [BOB, {**BOB, "name": "old", "tags": "a,b"}])
    assert ask("users", "list").stdout.splitlines() == ["name\ttags", "bob\tmanagement", "old\ta,b"]


def test_vhosts(ask: Type, api: FakeApi) -> None:
    api.on("PUT", "/api/vhosts/v", status=201)
    api.on("DELETE", "/api/vhosts/v", status=204)
    assert ask("vhosts", "add", "v", "--description", "for tests").exit_code == 0
    assert ask("vhosts", "delete", "v").exit_code == 0
    assert api.asked == ["GET /api/vhosts/v", "PUT /api/vhosts/v", "DELETE /api/vhosts/v"]
    assert api.requests[1].body == {"description": "for tests"}


def test_permissions(ask: Type, api: FakeApi) -> None:
    for method in ("PUT", "DELETE"):
        api.on(method, "/api/permissions/%2F/bob", status=204)
        api.on(method, "/api/topic-permissions/v/bob", status=204)
    assert ask("permissions", "set", "bob", "^$", "", ".*").exit_code == 0
    assert ask("permissions", "clear", "bob").exit_code == 0
    assert ask("permissions", "topic", "set", "bob", "amq.topic", "^a", ".*", "-p", "v").exit_code == 0
    assert ask("permissions", "topic", "clear", "bob", "--vhost", "v").exit_code == 0
    assert api.requests[0].body == {"configure": "^$", "write": "", "read": ".*"}
    assert api.requests[2].body == {"exchange": "amq.topic", "write": "^a", "read": ".*"}
    assert [request.method for request in api.requests] == ["PUT", "DELETE", "PUT", "DELETE"]


@pytest.mark.parametrize(
    ("options", "path", "target"), [([], "policies", "all"), (["--operator"], "operator-policies", "queues")]
)
def test_policies(ask: Type, api: FakeApi, options: list[str], path: str, target: str) -> None:
    api.on("PUT", f"/api/{path}/%2F/p", status=201)
    api.on("DELETE", f"/api/{path}/%2F/p", status=204)
    definition = '{"max-length": 5}'
    assert ask("policies", "set", "p", "^tmp", definition, "--priority", "3", *options).exit_code == 0
    assert ask("policies", "clear", "p", *options).exit_code == 0
    expected = {"pattern": "^tmp", "definition": {"max-length": 5}, "priority": 3, "apply-to": target}
    assert api.requests[0].body == expected
    assert api.requests[1].method == "DELETE"


def test_definitions_go_to_a_file_that_only_the_owner_reads(ask: Type, api: FakeApi, tmp_path: Path) -> None:
    definitions = {"users": [BOB], "queues": []}
    api.on("GET", "/api/definitions", definitions)
    file = tmp_path / "definitions.json"
    assert ask("definitions", "export", str(file)).exit_code == 0
    assert json.loads(file.read_text()) == definitions
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(ask("definitions", "export").stdout) == definitions


def test_definitions_are_sent_as_they_are(ask: Type, api: FakeApi, tmp_path: Path) -> None:
    api.on("POST", "/api/definitions", status=204)
    api.on("POST", "/api/definitions/v", status=204)
    definitions = {"users": [BOB], "queues": [], "rabbit_version": "3.10"}
    (tmp_path / "d.json").write_text(json.dumps(definitions))
    result = ask("definitions", "import", str(tmp_path / "d.json"))
    assert result.exit_code == 0
    assert result.stderr == "definitions imported: 1 users, 0 queues\n"
    assert ask("definitions", "import", "-", "-p", "v", stdin=json.dumps(definitions)).exit_code == 0
    assert [request.body for request in api.requests] == [definitions, definitions]
    assert ask("definitions", "import", "-", stdin="{").exit_code == 2
    assert ask("definitions", "import", "-", stdin="[]").exit_code == 2
    assert ask("definitions", "export", str(tmp_path / "no" / "where")).exit_code in (1, 2)


def test_the_last_administrator_is_deleted_with_force_only(ask: Type, api: FakeApi) -> None:
    api.on("DELETE", "/api/users/bob", {"error": "bad_request", "reason": "no administrator would be left"}, status=400)
    api.on("DELETE", "/api/users/bob?force=true", status=204)
    api.on("GET", "/api/users/bob", BOB)
    api.on("PUT", "/api/users/bob?force=true", status=204)
    assert "no administrator would be left" in ask("users", "delete", "bob").stderr
    assert ask("users", "delete", "bob", "--force").exit_code == 0
    assert ask("users", "tags", "bob", "--force").exit_code == 0


def test_users_are_changed_by_a_key(ask: Type, api: FakeApi, tmp_path: Path) -> None:
    key = tmp_path / "own.key"
    key.write_text("0123456789abcdef\n")
    api.on("PUT", "/api/users/ann", status=201)
    api.on("PUT", "/api/permissions/%2F/ann", status=201)
    assert ask("users", "add", "ann", "--tags", "administrator", "--key-file", str(key), stdin="pw\n").exit_code == 0
    assert ask("permissions", "set", "ann", ".*", ".*", ".*", "--key-file", str(key)).exit_code == 0
    assert all(request.headers["Authorization"].startswith("PandoMQ-Key 2:") for request in api.requests)
