"""Messages that are got over HTTP: encoded one by one, within a limit for the answer and for all answers of a user."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.admin import application, limits
from pandomq.admin.endpoints import fetching
from pandomq.admin.request_room import Share
from pandomq.admin.responses import send_response
from pandomq.limits import HTTP_BYTES_MIN
from pandomq.properties import decode_header
from tests.unit.admin.one_broker import GUEST, JSON, LOOPBACK, Answer, OneBroker

HEADERS = {f"key {number}": "v" * 20 for number in range(100)}
"""About three kilobytes, as AMQP and as JSON."""
GET = "/api/queues/%2F/q/get"
MODES = ["ack_requeue_true", "reject_requeue_true", "ack_requeue_false", "reject_requeue_false"]


def filled(payloads: list[str], headers: dict[str, Any] = HEADERS, **settings: Any) -> OneBroker:
    broker = OneBroker(**settings)
    assert broker.ask("PUT", "/api/queues/%2F/q", {}).status == 201
    for payload in payloads:
        properties = {"headers": headers}
        body = {"properties": properties, "routing_key": "q", "payload": payload, "payload_encoding": "string"}
        assert broker.ask("POST", "/api/exchanges/%2F/amq.default/publish", body).status == 200
    return broker


def asked(count: int, mode: str = "ack_requeue_true", **more: Any) -> dict[str, Any]:
    return {"count": count, "ackmode": mode, "encoding": "auto", **more}


def at_once(broker: OneBroker, bodies: list[dict[str, Any]]) -> list[Answer]:
    async def run() -> list[Answer]:
        octets = [msgspec.json.encode(body) for body in bodies]
        headers = {**JSON, "authorization": GUEST}
        return await asyncio.gather(
            *(
                broker._ask("POST", GET, body, {**headers, "content-length": str(len(body))}, LOOPBACK)
                for body in octets
            )
        )

    return asyncio.run(run())


def payloads(answer: Answer) -> list[str]:
    assert answer.status == 200
    return [row["payload"] for row in msgspec.json.decode(answer.body)]


def test_each_header_is_decoded_once_and_in_its_own_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five hundred messages with headers of 35 KB once held up the broker for two seconds."""
    broker = filled(["x"] * 30)
    turn, decoded = 0, Counter[int]()

    def counting(header: bytes) -> Any:
        decoded[turn] += 1
        return decode_header(header)

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    tick = broker._tick

    async def tick_and_count() -> None:
        await asyncio.gather(tick(), count_turns())

    monkeypatch.setattr(broker, "_tick", tick_and_count)
    monkeypatch.setattr(fetching, "decode_header", counting)
    assert payloads(broker.ask("POST", GET, asked(30))) == ["x"] * 30
    assert decoded.total() == 30
    assert max(decoded.values()) == 1


def test_a_large_header_is_decoded_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads: list[object] = []
    to_thread = asyncio.to_thread

    async def watched(work: Any, *more: Any) -> Any:
        in_threads.append(work)
        return await to_thread(work, *more)

    monkeypatch.setattr(asyncio, "to_thread", watched)
    broker = filled(["x", "y"], {f"key {number}": "v" * 20 for number in range(2_000)})
    [row, _] = msgspec.json.decode(broker.ask("POST", GET, asked(2)).body)
    assert len(row["properties"]["headers"]) == 2_000
    assert in_threads == [fetching._facts] * 2


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_at_its_limit_has_fewer_messages_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Headers count, too: these messages have next to no bodies."""
    broker = filled([str(number) for number in range(8)])
    monkeypatch.setattr(limits, "GET_BYTES_MAX", 14_000)
    answer = broker.ask("POST", GET, asked(8, mode))
    got = payloads(answer)
    assert 2 <= len(got) < 8 and len(answer.body) <= 14_000
    monkeypatch.undo()
    left = payloads(broker.ask("POST", GET, asked(8, "ack_requeue_false")))
    everything = [str(number) for number in range(8)]
    assert (got, left) == (everything[: len(got)], everything if "true" in mode else everything[len(got) :])


@pytest.mark.parametrize("mode", MODES)
def test_a_message_that_does_not_fit_stays_and_the_refusal_explains_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    broker = filled(["x" * 20_000, "y"])
    monkeypatch.setattr(limits, "GET_BYTES_MAX", 10_000)
    answer = broker.ask("POST", GET, asked(2, mode))
    assert answer.status == 413
    assert answer.reason == (
        "the first message does not fit in an answer of 10000 bytes: shorten the payload with 'truncate', or get it "
        "over AMQP"
    )
    assert payloads(broker.ask("POST", GET, asked(2, "ack_requeue_false", truncate=3))) == ["xxx", "y"]


def test_a_user_waits_while_earlier_answers_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer has room for the largest one, and then as much as it needs: here for two of five at a time."""
    broker = filled(["x" * 3_000_000], http_per_user_bytes_max=limits.GET_BYTES_MAX + 4_000_000)
    writing: list[int] = []
    under_way = 0

    async def slowly(response: Any, send: Any) -> None:
        nonlocal under_way
        under_way += 1
        writing.append(under_way)
        await asyncio.sleep(0.05)
        under_way -= 1
        await send_response(response, send)

    monkeypatch.setattr(application, "send_response", slowly)
    answers = at_once(broker, [asked(1, "ack_requeue_true")] * 5)
    assert {answer.status for answer in answers} == {200}
    assert (len(writing), max(writing)) == (5, 2)


def test_the_largest_answer_has_room_where_there_is_room_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bodies of the requests once kept it from all of them."""
    monkeypatch.setattr(limits, "ANSWER_S_MAX", 5.0)
    broker = filled(["x"], http_per_user_bytes_max=HTTP_BYTES_MIN)
    answers = at_once(broker, [asked(1)] + [asked(1, unknown="x" * 100_000)] * 10)
    assert [answer.status for answer in answers] == [200] * 11


def test_two_gets_of_a_user_have_room_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = filled(["x"])
    under_way, most = 0, 0
    taken = fetching._taken

    async def watched(*given: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1
        return await taken(*given)

    monkeypatch.setattr(fetching, "_taken", watched)
    assert {answer.status for answer in at_once(broker, [asked(1)] * 4)} == {200}
    assert most == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("moment", ["while it waits", "while the messages are taken"])
def test_a_client_that_has_gone_takes_no_messages(monkeypatch: pytest.MonkeyPatch, mode: str, moment: str) -> None:
    broker = filled(["x", "y"])
    gone = False
    taken, wait_for = fetching._taken, Share.wait_for
    takes: list[object] = []

    async def leave_while_waiting(share: Share, size: int) -> None:
        nonlocal gone
        await wait_for(share, size)
        gone = gone or moment == "while it waits"

    async def leave_while_taking(*given: Any) -> Any:
        nonlocal gone
        takes.append(given)
        gone = True
        return await taken(*given)

    with monkeypatch.context() as patch:
        patch.setattr(Share, "wait_for", leave_while_waiting)
        patch.setattr(fetching, "_taken", leave_while_taking)
        body = msgspec.json.encode(asked(2, mode))
        headers = {**JSON, "content-length": str(len(body)), "authorization": GUEST}
        asyncio.run(broker._ask("POST", GET, body, headers, LOOPBACK, has_disconnected=lambda: gone))
    assert len(takes) == (moment != "while it waits")
    assert payloads(broker.ask("POST", GET, asked(2))) == ["x", "y"]


@given(st.binary(max_size=100) | st.text(max_size=60).map(str.encode))
def test_a_payload_in_slices_is_the_payload(body: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SLICE_BYTES", 9)
        text = asyncio.run(fetching._text(memoryview(body)))
        encoded = asyncio.run(fetching._base64(memoryview(body)))
    assert base64.b64decode(encoded, validate=True) == body
    try:
        whole = body.decode()
    except UnicodeDecodeError:
        assert text is None
    else:
        assert text is not None and json.loads(b'"' + text + b'"') == whole
