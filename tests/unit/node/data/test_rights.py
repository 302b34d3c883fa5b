"""Each cell of the data port's table of rights: with the right and without it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pandomq.broker.administration.permissions import Right
from pandomq.broker.administration.rights import DATA, QUEUE, SOME_EXCHANGE
from pandomq.broker.log.commands import PutPermissions, PutUser
from pandomq.methods import QueueDeclare
from tests.unit.broker.staging_scene import frames

from .data_port import Connection, DataPort

Fields = dict[str, Any]
LEASE: Final[Fields] = {"queue": "q", "name": "job", "messages_max": 1, "bytes_max": 1000, "timeout_ms": 5000}
ASKS: Final[dict[str, Fields]] = {
    "range": {"stream": "s"},
    "offset_at": {"stream": "s", "time_us": 0},
    "index": {"stream": "s", "first_offset": 0, "end_offset": 1},
    "read": {"stream": "s", "first_offset": 0, "end_offset": 1, "bytes_max": 100},
    "stored_offsets": {"stream": "s"},
    "store_offset": {"stream": "s", "name": "n", "offset": 1},
    "lease": LEASE,
    "release": {**LEASE, "offset": 0},
    "end_lease": LEASE,
    "stage": {"query": "w", "batch": 0, "partition": 0, "attempt": "a", "part": 0},
    "commit": {"query": "w", "batch": 0, "attempts": []},
    "drop": {"query": "w", "batch": 0, "attempts": []},
    "last_batch": {"query": "w"},
}


class Scene:
    def __init__(self) -> None:
        self.port = DataPort()
        self.broker = self.port.node.broker
        local = self.port.node.local_clients.open(
            user="guest", vhost="/", on_answer=lambda answer: None, now_ms=self.port.now_ms
        )
        local.send(QueueDeclare("s", False, True, False, False, False, {"x-queue-type": "stream"}))
        local.send(QueueDeclare("q", False, True, False, False, False, {}))
        guest = self.broker.state.users["guest"]
        self.broker.issue(PutUser("ann", guest.password_hash, guest.hashing, ()))
        self.grant()
        self.port.step()
        self.guest = self.port.known()
        assert "error" not in self.guest.ask({"ask": "lease", **LEASE})
        self.ann: Connection = self.port.connect()
        assert "node" in self.ann.greet(user="ann")

    def grant(self, right: Right | None = None, pattern: str = "^$") -> None:
        patterns = [pattern if one is right else "^$" for one in Right]
        self.broker.issue(PutPermissions("/", "ann", *patterns))

    def ask(self, ask: str) -> int:
        """The code of the refusal; 0 if there is none."""
        return int(self.ann.ask({"ask": ask, **ASKS[ask]}).get("error", 0))


def test_each_ask_is_tried() -> None:
    assert {*ASKS, "streams"} == set(DATA)


@pytest.mark.proves("R38")
@pytest.mark.parametrize("ask", [ask for ask in ASKS if QUEUE in DATA[ask].needs])
def test_a_request_about_a_queue_needs_its_right_on_that_queue(ask: str) -> None:
    scene = Scene()
    name = ASKS[ask].get("stream", "q")
    (needed,) = DATA[ask].needs[QUEUE]
    for right in Right:
        scene.grant(right, f"^{name}$")
        assert (scene.ask(ask) == 403) is (right is not needed), right
    scene.grant(needed, "^other$")
    assert scene.ask(ask) == 403


def test_streams_are_listed_for_users_that_may_read_them() -> None:
    scene = Scene()
    for right in Right:
        scene.grant(right, "^s$")
        streams = ["s"] if right in DATA["streams"].needs[QUEUE] else []
        assert scene.ann.ask({"ask": "streams", "pattern": ".*"}) == {"streams": streams}


@pytest.mark.parametrize("ask", [ask for ask in ASKS if SOME_EXCHANGE in DATA[ask].needs])
def test_to_stage_and_to_commit_nothing_needs_the_right_to_write_something(ask: str) -> None:
    scene = Scene()
    (needed,) = DATA[ask].needs[SOME_EXCHANGE]
    for right in Right:
        scene.grant(right, "^anything$")
        assert (scene.ask(ask) == 403) is (right is not needed), right


def test_staging_needs_the_rights_that_its_publishes_need() -> None:
    scene = Scene()
    for pattern, code in (("^amq.direct$", 403), ("^amq.fanout$", 0)):
        scene.grant(Right.WRITE, pattern)
        fields = {"ask": "stage", **ASKS["stage"]}
        assert scene.ann.ask(fields, frames("1", exchange="amq.fanout")).get("error", 0) == code


@pytest.mark.proves("R38")
@pytest.mark.parametrize("ask", ["stage", "commit", "drop", "last_batch"])
def test_a_query_is_its_users_own(ask: str) -> None:
    scene = Scene()
    assert scene.guest.ask({"ask": "stage", **ASKS["stage"]}) == {"decided": False}
    scene.grant(Right.WRITE, ".*")
    before = scene.guest.client.vhost.inner_queues.copy()
    # An attempt has the name that its writer chose, which nobody can foresee.
    assert scene.ask(ask) == (403 if ask == "stage" else 0)
    assert scene.guest.client.vhost.inner_queues == before
    assert "error" not in scene.ann.ask({"ask": ask, **ASKS[ask], "attempt": "anns"})
    assert scene.guest.ask({"ask": "last_batch", "query": "w"}) == {"batch": -1}


@pytest.mark.proves("R38")
def test_the_name_of_a_stored_offset_is_its_users_own() -> None:
    scene = Scene()
    assert scene.guest.ask({"ask": "store_offset", **ASKS["store_offset"]}) == {}
    scene.grant(Right.READ, "^s$")
    assert scene.ask("store_offset") == 403
    assert scene.ann.ask({"ask": "store_offset", "stream": "s", "name": "mine", "offset": 1}) == {}


def test_the_stream_of_a_lease_needs_the_right_on_the_queue() -> None:
    scene = Scene()
    fields = {"ask": "range", "stream": "pandomq.lease.job.q"}
    scene.grant(Right.READ, "^pandomq.*$")
    assert scene.ann.ask(fields)["error"] == 403
    scene.grant(Right.READ, "^q$")
    assert "error" not in scene.ann.ask(fields)
