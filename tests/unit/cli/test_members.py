"""`members`, `promote` and `status` on clusters: what they ask for, and what they say."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from pandomq.admin.access.key_login import Proof, fits_digest, read_proof, refusal
from tests.unit.cli.conftest import Type
from tests.unit.cli.fake_api import FakeApi

MEMBERS = [
    {"name": "n1", "role": "absent", "address": "h1:5672", "in_sync": False, "log_index": None, "commit_index": None,
     "lag_bytes": None, "connections": None},
    {"name": "n2", "role": "backup", "address": "h2:5672", "in_sync": False, "log_index": 120, "commit_index": 118,
     "lag_bytes": 0, "connections": 12},
]  # fmt: skip
CLUSTER: dict[str, Any] = {
    "cluster": "c", "name": "n2", "role": "backup", "epoch": 0, "term": 7, "root": None, "members": MEMBERS,
    "alarms": ["disk"], "alarm_texts": [], "kernel": "fast", "version": "1",
    "elections": [{"at_ms": 1_700_000_000_000, "term": 7, "root": "n1", "missing_ms": 340}],
    "links": [{"name": "n1", "address": "h1:5672", "state": "connecting: refused"}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def cluster(api: FakeApi) -> None:
    api.on("GET", "/api/cluster", CLUSTER)
    api.on("GET", "/api/cluster/members", MEMBERS)


def test_members_are_listed(ask: Type) -> None:
    lines = ask("members").stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["name", "role", "address"]
    assert lines[2].split("\t") == ["n2", "backup", "h2:5672", "false", "0", "12"]


def test_status_shows_links_and_elections(ask: Type) -> None:
    lines = ask("status").stdout.splitlines()
    assert "cluster c, term 7, no root: no message can be confirmed until one is elected" in lines
    assert "ALARM disk" in lines
    assert "LINK to n1 at h1:5672: connecting: refused" in lines
    assert lines[-1] == "  2023-11-14 22:13:20 UTC  term 7  n1, after 0.34 s without a root"


def test_a_member_is_added_and_removed(ask: Type, api: FakeApi) -> None:
    api.on("PUT", "/api/cluster/members/n4", status=201)
    api.on("DELETE", "/api/cluster/members/n4", status=204)
    assert ask("members", "add", "n4=h4:5672").stderr == "n4 is now a primary\n"
    assert api.requests[-1].body == {"address": "h4:5672"}
    assert ask("members", "remove", "n4").stderr == "n4 is no longer a primary\n"


def test_the_url_may_stand_before_the_command(type_: Type, api: FakeApi) -> None:
    api.on("PUT", "/api/cluster/members/n4", status=201)
    assert type_("members", "--url", api.url, "add", "n4=h4:5672").exit_code == 0


def test_the_key_is_a_login(ask: Type, api: FakeApi) -> None:
    Path("cluster.key").write_text("0123456789abcdef\n")
    api.on("POST", "/api/cluster/promote", {"done": "epoch 1 begins without n1"})
    assert ask("promote", "n2", "--force", "--dead", "n1", "--yes", "--key-file", "cluster.key").exit_code == 0
    assert ask("members", "--key-file", "cluster.key").exit_code == 0
    assert ask("status", "--key-file", "cluster.key").exit_code == 0
    for request in api.requests:
        header = request.headers["Authorization"]
        body = b"" if request.body is None else json.dumps(request.body, separators=(",", ":")).encode()
        target = request.target.encode()
        proof = read_proof(header)
        assert isinstance(proof, Proof) and fits_digest(body, proof.digest)
        assert refusal(proof, [b"0123456789abcdef"], request.method, target, int(time.time())) is None
    assert ask("status", "--key-file", "none.key").exit_code == 2


@pytest.mark.parametrize("words", [("add", "n4"), ("add", "n4=h4"), ("add", "n4=h4:0"), ("add", "=h4:5672")])
def test_contradictory_changes_of_members_are_usage_errors(ask: Type, api: FakeApi, words: tuple[str, ...]) -> None:
    assert ask("members", *words).exit_code == 2
    assert api.requests == []


def test_a_hand_over_needs_no_confirmation(ask: Type, api: FakeApi) -> None:
    api.on("POST", "/api/cluster/promote", {"done": "handed over to n2"})
    result = ask("promote", "n2")
    assert (result.exit_code, result.stderr) == (0, "handed over to n2\n")
    assert api.requests[-1].body == {"name": "n2"}


def test_a_forced_promotion_shows_its_possible_losses(ask: Type, api: FakeApi) -> None:
    api.on("POST", "/api/cluster/promote", {"done": "epoch 1 begins without n1"})
    result = ask("promote", "n2", "--force", "--dead", "n1")
    assert result.exit_code == 2, "there is no terminal to ask for confirmation"
    assert api.asked == ["GET /api/cluster"]
    result = ask("promote", "n2", "--force", "--dead", "n1", "--yes")
    assert result.stderr.splitlines() == [
        "n2 will continue without n1.",
        "The log of n2 ends at entry 120; the entries up to 118 are known to be committed.",
        "The last root known to n2 was n1, since 2023-11-14 22:13:20 UTC.",
        "Messages that were confirmed to clients and are on n1 alone are lost.",
        "A broker that returns later follows n2; entries that only it has are kept in a side file in its directory.",
        (
            "If one of them is still running and serves clients, there will be two clusters: make sure that none of "
            "them runs."
        ),
        "epoch 1 begins without n1",
    ]
    assert api.requests[-1].body == {"name": "n2", "force": True, "dead": ["n1"]}


def test_a_promotion_that_leaves_too_few_brokers_is_reported(ask: Type, api: FakeApi) -> None:
    third = {"name": "n3", "role": "absent", "address": "h3:5672"}
    api.on("GET", "/api/cluster", {**CLUSTER, "members": [*MEMBERS, third]})
    result = ask("promote", "n2", "--force", "--dead", "n1")
    told = "Of n2, n3, which would elect a root, only n2 can be reached: name all brokers that are lost."
    assert told in result.stderr.splitlines()


def test_the_reason_of_a_refusal_is_shown(ask: Type, api: FakeApi) -> None:
    api.on("POST", "/api/cluster/promote", {"error": "bad_request", "reason": "n1 is not dead: it responded"}, 400)
    result = ask("promote", "n2", "--force", "--dead", "n1", "--yes")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, "pandomq: n1 is not dead: it responded")


@pytest.mark.parametrize(
    "words",
    [("n2", "--force"), ("n2", "--dead", "n1"), ("n2", "--force", "--dead", "n2"), ("n2", "--force", "--dead", ",")],
)
def test_contradictory_promotions_are_usage_errors(ask: Type, api: FakeApi, words: tuple[str, ...]) -> None:
    assert ask("promote", *words).exit_code == 2
    assert api.requests == []


def test_the_option_dead_needs_the_option_force(ask: Type) -> None:
    done = ask("promote", "n2", "--dead", "n1,n3")
    assert done.exit_code == 2 and "--dead n1,n3 works only together with --force" in done.output
