"""Leases through the data port of a node in memory: what is asked, who may ask, and what is read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pandomq import chunk_form
from pandomq.admin.listings.queue_rows import queue_detail_row
from pandomq.broker.log.commands import PutPermissions
from pandomq.methods import BasicPublish, QueueDeclare, QueueDelete
from pandomq.node.clients.local_client import LocalClient
from pandomq.node.pressure import LOW_ON_MEMORY
from pandomq.properties import Properties, encode_header

from .data_port import DataPort

Fields = dict[str, Any]
WISH: Fields = {"messages_max": 100, "bytes_max": 10_000_000, "timeout_ms": 30_000}


class Scene:
    """A queue with messages `m0`, `m1` and so on."""

    def __init__(self, count: int = 5) -> None:
        self.port = DataPort()
        self.local: LocalClient = self.port.node.local_clients.open(
            user="guest", vhost="/", on_answer=lambda answer: None, now_ms=self.port.now_ms
        )
        self.local.send(QueueDeclare("q", False, True, False, False, False, {}))
        for number in range(count):
            body = b"m%d" % number
            self.local.publish(BasicPublish("", "q", False, False), encode_header(len(body), Properties()), body)
        self.port.step()
        self.connection = self.port.known()

    def ask(self, ask: str, **fields: Any) -> Fields:
        return self.connection.ask({"ask": ask, "queue": "q", "name": "job", **fields})

    def lease(self, **wish: Any) -> Fields:
        return self.ask("lease", **{**WISH, **wish})

    def read(self, stream: str, first: int, end: int) -> list[bytes] | int:
        """The bodies, or the code of the refusal."""
        answer = self.connection.ask(
            {"ask": "read", "stream": stream, "first_offset": first, "end_offset": end, "bytes_max": 2**24}
        )
        if "error" in answer:
            return int(answer["error"])
        payload, bodies = self.connection.payload, []
        for size in answer["sizes"]:
            bodies += [row.body for row in chunk_form.decode_rows(payload[:size]) if first <= row.offset < end]
            payload = payload[size:]
        return bodies

    def ready(self) -> int:
        view = self.port.node.views.queue("/", "q")
        assert view is not None
        return view.ready


def test_lease_read_release_end() -> None:
    scene = Scene()
    answer = scene.lease(messages_max=3)
    stream, first, end = answer["stream"], answer["first_offset"], answer["end_offset"]
    assert answer == {"stream": "pandomq.lease.job.q", "first_offset": first, "end_offset": first + 3, "more": False}
    assert scene.read(stream, first, end) == scene.read(stream, first, end) == [b"m0", b"m1", b"m2"]
    assert scene.connection.ask({"ask": "range", "stream": stream})["end_offset"] == end
    assert scene.ask("release", offset=first + 2)["first_offset"] == first + 2
    assert scene.lease(messages_max=3)["end_offset"] == end + 2
    assert scene.ready() == 0
    assert scene.ask("end_lease") == {}
    assert scene.ready() == 3
    assert scene.read(stream, first + 2, end) == 404
    assert scene.ask("end_lease")["error"] == 404
    assert scene.ask("release", offset=first + 3)["error"] == 404


def test_an_earlier_range_of_a_lease_that_came_again_is_gone() -> None:
    scene = Scene()
    before = scene.lease()
    scene.ask("end_lease")
    scene.port.pass_ms(5)
    again = scene.lease()
    assert scene.read(before["stream"], before["first_offset"], before["end_offset"]) == 410
    assert scene.read(again["stream"], again["first_offset"], again["end_offset"]) == [b"m%d" % i for i in range(5)]


def test_reading_keeps_it_and_silence_ends_it() -> None:
    scene = Scene()
    answer = scene.lease(timeout_ms=10_000)
    for _ in range(4):
        scene.port.pass_ms(9_000)
        assert scene.read(answer["stream"], answer["first_offset"], answer["end_offset"]) != 404
    scene.port.pass_ms(10_000)
    assert scene.read(answer["stream"], answer["first_offset"], answer["end_offset"]) == 404
    assert scene.ready() == 5


def test_a_lease_needs_the_right_to_read_the_queue() -> None:
    scene = Scene()
    answer = scene.lease()
    stream, first, end = answer["stream"], answer["first_offset"], answer["end_offset"]

    def permit(read: str) -> None:
        scene.port.node.administer(PutPermissions("/", "guest", ".*", ".*", read), lambda fault: None)
        scene.port.step()

    permit("other|pandomq.*")
    assert scene.read(stream, first, end) == 403
    for ask in ("lease", "release", "end_lease"):
        assert scene.ask(ask, offset=first, **WISH)["error"] == 403
    permit("q")
    assert scene.read(stream, first, end) == [b"m%d" % number for number in range(5)]
    assert scene.ask("release", offset=end)["first_offset"] == end


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"queue": "none"}, 404),
        ({"queue": 5}, 400),
        ({"name": "a.b"}, 406),
        ({"name": None}, 400),
        ({"messages_max": -1}, 400),
        ({"messages_max": 10**9}, 406),
        ({"bytes_max": "much"}, 400),
        ({"timeout_ms": 5}, 406),
        ({"timeout_ms": 10**12}, 406),
    ],
)
def test_requests_for_a_lease_with_wrong_fields_are_refused(change: Fields, code: int) -> None:
    scene = Scene()
    assert scene.lease(**change)["error"] == code
    assert scene.ready() == 5


def test_a_stream_with_the_name_of_a_lease_does_not_disturb_it() -> None:
    """Clients may use any name, and disturb no lease with it."""
    scene = Scene()
    answer = scene.lease(messages_max=3)
    stream = {"x-queue-type": "stream"}
    scene.local.send(QueueDeclare(answer["stream"], False, True, False, False, False, stream))
    scene.port.step()
    assert scene.read(answer["stream"], answer["first_offset"], answer["end_offset"]) == [b"m0", b"m1", b"m2"]
    scene.ask("release", offset=answer["first_offset"] + 1)
    scene.ask("end_lease")
    assert scene.ready() == 4
    assert scene.connection.ask({"ask": "range", "stream": answer["stream"]})["end_offset"] == 0


def test_a_queue_that_is_deleted_ends_it() -> None:
    scene = Scene()
    answer = scene.lease()
    scene.local.send(QueueDelete("q"))
    scene.port.step()
    assert scene.read(answer["stream"], answer["first_offset"], answer["end_offset"]) == 404
    assert scene.lease()["error"] == 404


def test_a_log_that_should_not_grow_leases_nothing_more() -> None:
    scene = Scene()
    services = scene.port.node.data.services
    first = scene.lease(messages_max=2)
    services.held_back = lambda: "low on disk"
    answer = scene.lease()
    assert (answer["first_offset"], answer["end_offset"], answer["more"]) == (*_range(first), False)
    assert scene.ask("release", offset=first["end_offset"])["first_offset"] == first["end_offset"]
    services.held_back = lambda: LOW_ON_MEMORY
    assert scene.lease()["end_offset"] == first["end_offset"] + 3, "that takes them out of memory"


def _range(answer: Fields) -> tuple[int, int]:
    return answer["first_offset"], answer["end_offset"]


def test_views_show_it() -> None:
    scene = Scene()
    answer = scene.lease(messages_max=3)
    scene.ask("release", offset=answer["first_offset"] + 1)
    view = scene.port.node.views.queue("/", "q")
    assert view is not None
    assert (view.ready, view.unacked, view.acked) == (2, 2, 1)
    (before,) = (mark for name, mark in scene.port.node.views.queue_marks() if name == ("/", "q"))
    (lease,) = view.leases
    assert (lease.name, lease.stream, lease.timeout_ms) == ("job", answer["stream"], 30_000)
    assert lease.end_offset - lease.first_offset == 2
    use = scene.port.node.views.queue_use("/", "q")
    assert use is not None
    row = msgspec.to_builtins(queue_detail_row(view, (), "n1", use))
    assert (row["messages_ready"], row["messages_unacknowledged"], row["messages"]) == (2, 2, 4)
    assert row["leases"] == [
        {
            "name": "job",
            "stream": answer["stream"],
            "messages": 2,
            "first_offset": lease.first_offset,
            "end_offset": lease.end_offset,
            "timeout_ms": 30_000,
            "state": "running",
        }
    ]
    assert sum(size.unacked for size in scene.port.node.views.queue_sizes()) == 2
    scene.ask("release", offset=answer["end_offset"])
    (after,) = (mark for name, mark in scene.port.node.views.queue_marks() if name == ("/", "q"))
    assert before != after, "its row is another"
