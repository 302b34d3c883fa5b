"""Attempts to log in: at once, after the hash, in a crowd, and refused in time."""

from collections.abc import Iterator
from random import Random

import pytest

from pandomq.broker.broker import Broker
from pandomq.broker.limits import BrokerLimits
from pandomq.ids import UserName
from pandomq.node.attempts import Attempt, Attempts, Caller
from pandomq.node.logins import Logins, Question, Secrets, Welcome
from pandomq.node.penalties import FIRST_WAIT_MS
from pandomq.node.settings import NodeSettings
from pandomq.wire.codec import encode_frame, encode_method
from pandomq.wire.inputs import Login

KNOWN, UNKNOWN = b"guest", b"never seen"
SECOND_MS = 1000


@pytest.fixture
def attempts() -> Attempts:
    broker = Broker(
        node_name="n1", encode=encode_frame, encode_payload=encode_method, random=Random(1), limits=BrokerLimits()
    )
    logins = Logins(NodeSettings(), broker, Secrets(b"key", b"salt"))
    logins.make_first_user(0)
    return Attempts(logins, 0)


def attempt(password: bytes = UNKNOWN, address: str = "192.0.2.7", user: str = "guest") -> Attempt:
    login = Login("PLAIN", UserName(user), password, {})
    return Attempt(Caller(lambda _: None, lambda: False), f"{address}:50000", address, login, None, True)


def turns(attempts: Attempts) -> Iterator[Attempt]:
    while (turn := attempts.next(0)) is not None:
        yield turn[0]


def test_a_known_password_does_not_wait(attempts: Attempts) -> None:
    first = attempt()
    assert attempts.begin(first, 0) is None
    assert attempts.begin(attempt(KNOWN), 0) == Welcome("guest")
    assert list(turns(attempts)) == [first]


def test_a_crowd_with_one_password_waits_for_one_hash(attempts: Attempts) -> None:
    """After a restart everybody comes back at once, and nobody is known yet."""
    crowd = [attempt(address=f"192.0.2.{number % 9}") for number in range(100)]
    for one in crowd:
        attempts.begin(one, 0)
    turn = attempts.next(0)
    assert turn is not None
    first, question = turn
    assert isinstance(question, Question)
    assert attempts.next(0) is None
    attempts.logins._credentials.remember(question.user, question.password_hash, question.password)
    assert attempts.verified(first, question, fits=True, now_ms=0) == Welcome("guest")
    rest = []
    while (turn := attempts.next(0)) is not None:
        assert turn[1] == Welcome("guest")
        rest.append(turn[0])
    assert len(rest) == len(crowd) - 1


def test_a_failure_is_told_after_a_while_and_logged_without_the_password(
    attempts: Attempts, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = attempt(), attempt()
    attempts.begin(one, 0)
    attempts.begin(other, 0)
    turn = attempts.next(0)
    assert turn is not None and isinstance(turn[1], Question)
    assert attempts.verified(one, turn[1], fits=False, now_ms=0) is None
    assert attempts.next(0) is None, "the same guess at the same user waits for the refusal"
    assert attempts.due(FIRST_WAIT_MS - 1) == []
    assert attempts.due(SECOND_MS) == [one]
    turn = attempts.next(SECOND_MS)
    assert turn is not None and turn[0] == other
    assert [record.getMessage() for record in caplog.records] == [
        "login from 192.0.2.7:50000 refused: unknown user or wrong password for 'guest'"
    ]


def test_who_has_gone_is_not_looked_at(attempts: Attempts) -> None:
    gone, waiting = attempt(), attempt()
    for one in (gone, waiting):
        attempts.begin(one, 0)
    assert isinstance(gone.who, Caller)
    gone.who.give_up()
    assert list(turns(attempts)) == [waiting]


def test_who_has_hung_up_is_not_looked_at(attempts: Attempts) -> None:
    """A flood of guesses whose clients are gone keeps nobody waiting."""
    hung_up = False
    guess = attempt()
    flood = [guess._replace(who=Caller(lambda _: None, lambda: hung_up)) for _ in range(50)]
    for one in (*flood, guess):
        attempts.begin(one, 0)
    hung_up = True
    assert list(turns(attempts)) == [guess]


def test_a_failure_elsewhere_holds_up_nobody(attempts: Attempts) -> None:
    guesser, victim = attempt(), attempt(address="192.0.2.99")
    attempts.begin(guesser, 0)
    turn = attempts.next(0)
    assert turn is not None and isinstance(turn[1], Question)
    attempts.verified(guesser, turn[1], fits=False, now_ms=0)
    attempts.begin(victim, 0)
    assert list(turns(attempts)) == [victim]
