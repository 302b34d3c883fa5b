"""Calls by which the runtime and the HTTP API enter a node outside of its steps, and that fail unexpectedly."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from pandomq import data_form
from pandomq.broker.broker import Broker
from pandomq.errors import ConnectionFault
from pandomq.node.clients.acceptor import ClientAcceptor
from pandomq.node.clients.attempts import LoginRequester
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.clients.client_links import ClientLinks
from pandomq.node.data.effects import SendParts
from pandomq.node.data.scanner import DataScanner
from pandomq.node.data.session import DataSession, DataSessionState
from pandomq.node.data.sessions import DataSessions
from pandomq.sim.disks.disk import SimDisk
from pandomq.wire.inputs import Login
from tests.unit.node.lives import Life

PEER = ("127.0.0.1", 5_000)


class Bug(Exception):
    pass


def fail(*_: object, **__: object) -> Any:
    raise Bug


def fail_after_change(broker: Broker) -> Any:
    """Stands for code that has begun to change state."""

    def failing(*_: object, **__: object) -> Any:
        broker.commands_changed += 1
        raise Bug

    return failing


@pytest.fixture
def life() -> Life:
    return Life(SimDisk(Random(1)), 1_000)


def connect(life: Life) -> DataSession:
    return life.node.data.accept(SimpleNamespace(), PEER, life.now_ms)


def test_a_data_client_whose_bytes_cannot_be_read_is_closed_alone(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = connect(life), connect(life)
    with monkeypatch.context() as patched:
        patched.setattr(DataScanner, "feed", fail)
        life.node.data.receive(client, b"anything", life.now_ms)
    assert (client.state, other.state) == (DataSessionState.ENDED, DataSessionState.NEW)
    output = life.node.step(life.now_ms)
    assert output.restart is None and life.node.ready
    [sent] = [effect for effect in output.data if isinstance(effect, SendParts)]
    assert sent.client is client and b'"error":541' in bytes(sent.parts[0])  # type: ignore[arg-type]
    assert [type(error) for error in life.node.guard.errors] == [Bug]


@pytest.mark.parametrize("entry", ["receive", "sent"])
def test_the_data_port_in_doubt_restarts_the_state(life: Life, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    client = connect(life)
    with monkeypatch.context() as patched:
        patched.setattr(DataSessions, "_take_requests", fail_after_change(life.broker))
        if entry == "receive":
            life.node.data.receive(client, b"anything", life.now_ms)
        else:
            life.node.data.sent(client, life.now_ms)
    output = life.node.step(life.now_ms)
    assert output.restart is not None
    assert any(isinstance(effect, SendParts) and effect.client is client for effect in output.data)


def test_a_data_client_that_is_lost_badly_restarts_the_state(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connect(life)
    with monkeypatch.context() as patched:
        patched.setattr(DataSessions, "_settle", fail)
        life.node.data.disconnected(client)
    assert life.node.step(life.now_ms).restart is not None


def test_a_client_that_waits_for_room_is_the_one_that_is_closed(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of one client make the broker look at another client: the exception belongs to that one."""
    leaving, waiting = connect(life), connect(life)
    waiting.waits_for_room = True
    with monkeypatch.context() as patched:
        patched.setattr(type(life.node.data._room), "admitted", lambda _: [waiting])
        patched.setattr(DataScanner, "take", fail)
        life.node.data.disconnected(leaving)
    assert waiting.state is DataSessionState.ENDED
    assert life.node.step(life.now_ms).restart is None


def test_a_request_over_http_that_cannot_be_served_is_answered(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Broker, "connect", fail)
        with pytest.raises(ConnectionFault) as raised:
            life.node.local_clients.open(user="guest", vhost="/", on_answer=fail, now_ms=life.now_ms)
    assert raised.value.reply_code == 541
    assert life.node.step(life.now_ms).restart is None


def test_a_request_over_http_after_a_change_restarts_the_state(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Broker, "connect", fail_after_change(life.broker))
        with pytest.raises(ConnectionFault):
            life.node.local_clients.open(user="guest", vhost="/", on_answer=fail, now_ms=life.now_ms)
    assert life.node.step(life.now_ms).restart is not None


def test_the_end_of_a_request_over_http_that_fails_restarts_the_state(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = life.node.local_clients.open(user="guest", vhost="/", on_answer=lambda _: None, now_ms=life.now_ms)
    with monkeypatch.context() as patched:
        patched.setattr(Broker, "disconnect", fail)
        local.close(life.now_ms)
    assert life.node.step(life.now_ms).restart is not None


@pytest.mark.parametrize(("owner", "name"), [(ClientLink, "pause"), (ClientLinks, "resume")])
def test_a_socket_that_is_paused_badly_restarts_the_state(
    life: Life, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    link = life.node.accept(SimpleNamespace(), PEER, life.now_ms)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fail)
        getattr(life.node, name)(link)
    assert life.node.step(life.now_ms).restart is not None


def test_nothing_goes_out_of_a_step_in_which_an_entry_point_failed(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data port logs its clients in from within a step."""
    client = connect(life)
    hello = {"ask": "hello", "version": 1, "user": "guest", "password": "guest", "vhost": "/"}
    life.node.data.receive(client, data_form.encode_json(hello), life.now_ms)
    with monkeypatch.context() as patched:
        patched.setattr(ClientAcceptor, "call", fail)
        output = life.node.step(life.now_ms)
    assert output.restart is not None and output.disk == ()


def test_a_login_over_http_that_fails_restarts_the_state(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = LoginRequester(lambda _: None, lambda: False)
    with monkeypatch.context() as patched:
        patched.setattr(ClientAcceptor, "call", fail)
        life.node.log_in(caller, Login("PLAIN", "guest", b"guest", {}), PEER, life.now_ms)  # type: ignore[arg-type]
    assert life.node.step(life.now_ms).restart is not None
