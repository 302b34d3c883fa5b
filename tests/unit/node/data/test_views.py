"""The views of the data port: its connections, and its counters."""

from __future__ import annotations

import pytest

from pandomq.data_form import Fields
from pandomq.node.data import limits
from pandomq.node.data.handlers import HANDLERS
from pandomq.node.data.session import DataSession, Responder

from .data_port import HELLO, DataPort, encode


def _echo(_client: DataSession, _fields: Fields, payload: bytes, answer: Responder) -> None:
    answer.ok({}, [payload])


def _wait(_client: DataSession, _fields: Fields, _payload: bytes, _answer: Responder) -> None:
    """It is never answered."""


def test_views_show_the_connections_and_their_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, handler in (("echo", _echo), ("wait", _wait)):
        monkeypatch.setitem(HANDLERS, name, handler)
    port = DataPort()
    views = port.node.views.data
    stranger, known = port.connect(), port.connect()
    known.greet()
    known.ask({"ask": "echo", "word": "x"}, b"12345")
    known.say({"ask": "wait"})
    shown = [(view.user, view.vhost, view.state, view.requests, view.waiting) for view in views.connections()]
    assert shown == [("", "", "starting", 0, 0), ("guest", "/", "running", 3, 1)]
    summary = views.summary()
    assert (summary.connections, summary.connections_max, summary.requests) == (2, limits.CONNECTIONS_MAX, 3)
    view = list(views.connections())[1]
    said = [encode(HELLO), encode({"ask": "echo", "word": "x"}, b"12345"), encode({"ask": "wait"})]
    assert view.received_bytes == summary.received_bytes == sum(map(len, said))
    assert view.sent_bytes == summary.sent_bytes > 5
    stranger.lose()
    known.lose()
    assert not list(views.connections()) and views.summary().requests == 3
