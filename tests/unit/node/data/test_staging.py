"""Staged batches over the data port of a broker alone."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import limits
from pandomq.broker.log.commands import PutPermissions, PutUser
from tests.unit.broker.staging_scene import frames

from .data_port import Connection, DataPort, Fields


@pytest.fixture
def client() -> Connection:
    return DataPort().known()


def stage(client: Connection, octets: bytes, part: int = 0, **other: Any) -> Fields:
    fields = {"ask": "stage", "query": "w", "batch": 0, "partition": 0, "attempt": "a", "part": part, **other}
    return client.ask(fields, octets)


def commit(client: Connection, *attempts: list[Any], batch: int = 0) -> Fields:
    return client.ask({"ask": "commit", "query": "w", "batch": batch, "attempts": list(attempts)})


@pytest.mark.proves("S2")
def test_a_batch_from_its_parts_to_its_end(client: Connection) -> None:
    last: Fields = {"ask": "last_batch", "query": "w"}
    assert client.ask(last) == {"batch": -1}
    assert stage(client, frames("1", exchange="amq.fanout")) == {"decided": False}
    assert stage(client, frames("2", exchange="amq.fanout"), 1) == {"decided": False}
    assert stage(client, frames("2", exchange="amq.fanout"), 1) == {"decided": False}
    engine = client.client.services.broker.engine
    before = engine.published
    assert commit(client, [0, "a", 2]) == {"unroutable": 2}
    assert engine.published == before + 2
    assert client.ask(last) == {"batch": 0}
    assert stage(client, b"", 0, attempt="late") == {"decided": True}
    assert commit(client, [0, "a", 2]) == {"unroutable": 2}
    assert stage(client, b"", batch=1) == {"decided": False}
    assert client.ask({"ask": "drop", "query": "w", "batch": 1, "attempts": [[0, "a"], [1, "b"]]}) == {}
    assert commit(client, [0, "a", 1], batch=1)["error"] == 404


def test_requests_to_stage_with_wrong_fields_are_refused(client: Connection) -> None:
    for other, code in (
        ({"query": ""}, 400),
        ({"query": 1}, 400),
        ({"attempt": "a.b"}, 400),
        ({"attempt": 7}, 400),
        ({"attempt": "a" * 65}, 400),
        ({"batch": -1}, 400),
        ({"part": 1}, 406),
        ({"queue": "missing"}, 404),
        ({"unroutable": "drop"}, 400),
        ({"unroutable": ["fail"]}, 400),
    ):
        assert stage(client, b"", **other)["error"] == code, other
    assert stage(client, b"nonsense")["error"] == 501
    assert stage(client, frames("1", exchange="missing"))["error"] == 404
    assert stage(client, frames("1", exchange="amq.fanout"), unroutable="fail")["error"] == 312
    assert stage(client, bytes(limits.STAGED_PART_BYTES_MAX + 1))["error"] == 413
    assert commit(client, [0, "a"])["error"] == 400
    assert commit(client, [0, "a", 1])["error"] == 404
    assert client.client.services.broker.state.vhosts["/"].inner_queues == {}


def test_nothing_is_staged_while_publishers_are_held_back() -> None:
    port = DataPort()
    client = port.known()
    client.client.services.held_back = lambda: "low on memory"
    assert stage(client, b"")["error"] == 503
    client.client.services.held_back = lambda: None
    assert stage(client, b"") == {"decided": False}


def test_numbers_of_a_batch_have_bounds(client: Connection) -> None:
    for other in ({"batch": limits.STAGED_BATCH_MAX + 1}, {"batch": 2**62}, {"partition": 2**31}):
        assert stage(client, b"", **other)["error"] == 400, other
    for batch in (limits.STAGED_BATCH_MAX + 1, 2**62):
        assert commit(client, batch=batch)["error"] == 400
        assert client.ask({"ask": "drop", "query": "w", "batch": batch, "attempts": [[0, "a"]]})["error"] == 400
    assert commit(client, [2**31, "a", 0])["error"] == 400
    assert client.ask({"ask": "last_batch", "query": "w"}) == {"batch": -1}
    assert commit(client, batch=limits.STAGED_BATCH_MAX) == {}


def test_another_user_can_neither_commit_nor_drop_what_is_staged() -> None:
    port = DataPort()
    owner = port.known()
    broker = owner.client.services.broker
    user = broker.state.users["guest"]
    for command in (
        PutUser("mallory", user.password_hash, user.hashing, ()),
        PutPermissions("/", "mallory", "^$", "^$", "^$"),
    ):
        broker.issue(command)
    port.step()
    assert stage(owner, frames("1", exchange="amq.fanout")) == {"decided": False}
    mallory = port.connect()
    assert "node" in mallory.greet(user="mallory")
    for permissions in ("^$", ".*"):
        broker.issue(PutPermissions("/", "mallory", permissions, permissions, permissions))
        assert stage(mallory, b"")["error"] == 403
        assert commit(mallory, [0, "a", 1])["error"] == 403
        assert mallory.ask({"ask": "drop", "query": "w", "batch": 0, "attempts": [[0, "a"]]}) == {}
        assert mallory.ask({"ask": "last_batch", "query": "w"}) == {"batch": -1}
        # The last user may write everywhere: its query of the same name is its own.
        assert ("error" in commit(mallory, batch=2**53)) == (permissions == "^$")
    before = broker.engine.published
    assert commit(owner, [0, "a", 1]) == {"unroutable": 1}
    assert broker.engine.published == before + 1
