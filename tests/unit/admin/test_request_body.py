"""Bodies of requests: read within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from starlette.requests import Request

from pandomq.admin import limits
from pandomq.admin.call import Call
from pandomq.admin.identity import Identity
from pandomq.admin.refusals import Refusal


def call(pieces: Iterable[bytes | None], headers: dict[str, str] | None = None) -> Call:
    """With a body that comes in these pieces; None hangs up, and after the last one nothing comes."""
    left = iter(pieces)

    async def receive() -> Any:
        for piece in left:
            if piece is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": piece != b""}
        await asyncio.sleep(3600)

    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": "PUT", "path": "/", "query_string": b"", "headers": raw}
    services: Any = None
    return Call(services, Request(scope, receive), {}, Identity("u", ()))


def refusal(asked: Call) -> Refusal:
    with pytest.raises(Refusal) as refused:
        asyncio.run(asked.read_body())
    return refused.value


def test_a_body_in_pieces() -> None:
    asked = call([b'{"a"', b": 1}", b""])
    asyncio.run(asked.read_body())
    assert asked.value("a") == 1
    assert not asked.has("b")


def test_a_body_that_never_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_S_MAX", 0.05)
    refused = refusal(call([b'{"a"']))
    assert (refused.status, refused.headers) == (408, {"connection": "close"})


def test_a_body_that_is_broken_off() -> None:
    assert refusal(call([b'{"a"', None])).status == 400


def test_a_body_that_grows_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_BYTES_MAX", 100)
    assert refusal(call([b" " * 60, b" " * 60, b""])).status == 413
    assert refusal(call([], {"content-length": "101"})).status == 413
    asyncio.run(call([b" " * 100, b""], {"content-length": "100"}).read_body())


@pytest.mark.parametrize(
    ("value", "meaning"), [(True, True), (False, False), ("true", True), ("false", False), (1, None), ("yes", None)]
)
def test_booleans_as_rabbitmq_takes_them(value: Any, meaning: bool | None) -> None:
    asked = call([])
    asked._body = {"flag": value}
    if meaning is None:
        with pytest.raises(Refusal):
            asked.boolean("flag")
    else:
        assert asked.boolean("flag") is meaning
    assert asked.boolean("absent") is False
