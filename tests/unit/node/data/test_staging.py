"""Staged batches over the data port of a broker alone."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import limits
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
    assert commit(client, [0, "a", 2]) == {}
    assert engine.published == before + 2
    assert client.ask(last) == {"batch": 0}
    assert stage(client, b"", 0, attempt="late") == {"decided": True}
    assert commit(client, [0, "a", 2]) == {}
    assert stage(client, b"", batch=1) == {"decided": False}
    assert client.ask({"ask": "drop", "query": "w", "batch": 1, "attempts": [[0, "a"], [1, "b"]]}) == {}
    assert commit(client, [0, "a", 1], batch=1)["error"] == 404


def test_what_is_refused(client: Connection) -> None:
    for other, code in (
        ({"query": ""}, 400),
        ({"query": 1}, 400),
        ({"attempt": "a.b"}, 400),
        ({"attempt": 7}, 400),
        ({"attempt": "a" * 65}, 400),
        ({"batch": -1}, 400),
        ({"part": 1}, 406),
        ({"queue": "missing"}, 404),
    ):
        assert stage(client, b"", **other)["error"] == code, other
    assert stage(client, b"nonsense")["error"] == 501
    assert stage(client, frames("1", exchange="missing"))["error"] == 404
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
