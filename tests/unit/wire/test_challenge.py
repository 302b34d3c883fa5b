"""Logins that take more than one word: connection.secure and its answer."""

from __future__ import annotations

import pytest

from pandomq.methods import ConnectionSecure, ConnectionSecureOk, ConnectionStartOk, ConnectionTune, ConnectionTuneOk
from pandomq.wire.codec import decode_method, encode_frame
from pandomq.wire.connection import Connection
from pandomq.wire.inputs import Faulted, Login, Secured
from pandomq.wire.offer import Agreed, Offer
from pandomq.wire.sasl import CLUSTER
from pandomq.wire.states import ConnectionState
from tests.unit.wire.peer import HEADER, TinyScanner

NOW_MS = 1_700_000_000_000
OFFER = Offer(version="1.2.3", mechanisms=("PLAIN", CLUSTER))


def challenged() -> Connection:
    connection = Connection(OFFER, TinyScanner, NOW_MS)
    (login,) = connection.receive(HEADER + encode_frame(0, ConnectionStartOk({}, CLUSTER, b"a hello", "en_US")))
    assert isinstance(login, Login) and login.password == b"a hello"
    connection.data_to_send()
    assert connection.challenge(b"prove it") == []
    return connection


def said(connection: Connection) -> object:
    return decode_method(connection.data_to_send()[7:-1])


def test_a_challenge_and_its_answer() -> None:
    connection = challenged()
    assert said(connection) == ConnectionSecure(b"prove it")
    assert connection.receive(encode_frame(0, ConnectionSecureOk(b"proven"))) == [Secured(b"proven")]
    assert connection.accept_login() == []
    assert isinstance(said(connection), ConnectionTune)


def test_a_second_challenge_may_follow() -> None:
    connection = challenged()
    connection.receive(encode_frame(0, ConnectionSecureOk(b"proven")))
    connection.data_to_send()
    connection.challenge(b"and that")
    assert said(connection) == ConnectionSecure(b"and that")
    assert connection.receive(encode_frame(0, ConnectionSecureOk(b"too"))) == [Secured(b"too")]


def test_an_accepted_client_may_be_offered_another_proposal() -> None:
    connection = challenged()
    connection.receive(encode_frame(0, ConnectionSecureOk(b"proven")))
    connection.data_to_send()
    connection.accept_login(Offer(version="1.2.3", proposal=Agreed(1, 131_072, 2)))
    assert said(connection) == ConnectionTune(1, 131_072, 2)
    assert connection.agreed == Agreed(1, 131_072, 2)


@pytest.mark.parametrize("ahead", [ConnectionTuneOk(1, 4096, 0), ConnectionStartOk({}, CLUSTER, b"", "en_US")])
def test_nothing_else_is_an_answer(ahead: ConnectionTuneOk | ConnectionStartOk) -> None:
    connection = challenged()
    (fault,) = connection.receive(encode_frame(0, ahead))
    assert isinstance(fault, Faulted) and fault.fault.reply_code == 504


def test_an_answer_to_no_challenge_is_a_fault() -> None:
    connection = Connection(OFFER, TinyScanner, NOW_MS)
    (fault,) = connection.receive(HEADER + encode_frame(0, ConnectionSecureOk(b"proven")))
    assert isinstance(fault, Faulted)


def test_a_refused_client_gets_the_challenge_and_no_more() -> None:
    connection = challenged()
    connection.hang_up()
    assert said(connection) == ConnectionSecure(b"prove it")
    assert connection.state is ConnectionState.CLOSED
    assert connection.receive(encode_frame(0, ConnectionSecureOk(b"proven"))) == []
