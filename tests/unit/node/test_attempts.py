"""Attempts to log in: at once, after the hash, in a crowd, and refused in time."""

import time
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from random import Random

import pytest

from pandomq.broker.administration.passwords import RABBITMQ_SHA256, SCRYPT, hash_password
from pandomq.broker.broker import Broker
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import PutUser
from pandomq.ids import UserName
from pandomq.node.clients.attempts import LoginAttempt, LoginAttempts, LoginRequester
from pandomq.node.clients.logins import LoginAccepted, Logins, PasswordCheck, Secrets
from pandomq.node.clients.penalties import FIRST_WAIT_MS
from pandomq.node.settings import NodeSettings
from pandomq.wire.codec import encode_frame, encode_method
from pandomq.wire.inputs import Login

KNOWN, UNKNOWN = b"guest", b"never seen"
SECOND_MS = 1000


@pytest.fixture
def attempts() -> LoginAttempts:
    broker = Broker(
        node_name="n1", encode=encode_frame, encode_payload=encode_method, random=Random(1), limits=BrokerLimits()
    )
    logins = Logins(NodeSettings(), broker, Secrets(b"key", b"salt"))
    logins.make_first_user(0)
    return LoginAttempts(logins, 0)


def attempt(password: bytes = UNKNOWN, address: str = "192.0.2.7", user: str = "guest") -> LoginAttempt:
    login = Login("PLAIN", UserName(user), password, {})
    return LoginAttempt(LoginRequester(lambda _: None, lambda: False), f"{address}:50000", address, login, None, True)


def turns(attempts: LoginAttempts) -> Iterator[LoginAttempt]:
    while (turn := attempts.next(0)) is not None:
        yield turn[0]


def test_a_known_password_does_not_wait(attempts: LoginAttempts) -> None:
    first = attempt()
    assert attempts.begin(first, 0) is None
    assert attempts.begin(attempt(KNOWN), 0) == LoginAccepted("guest")
    assert list(turns(attempts)) == [first]


def test_a_crowd_with_one_password_waits_for_one_hash(attempts: LoginAttempts) -> None:
    """After a restart all clients come back at once, and the broker has no verified password yet."""
    crowd = [attempt(address=f"192.0.2.{number % 9}") for number in range(100)]
    for one in crowd:
        attempts.begin(one, 0)
    turn = attempts.next(0)
    assert turn is not None
    first, question = turn
    assert isinstance(question, PasswordCheck)
    assert attempts.next(0) is None
    attempts.logins._credentials.remember(question.user, question.password_hash, question.password)
    assert attempts.verified(first, question, fits=True, now_ms=0) == LoginAccepted("guest")
    rest = []
    while (turn := attempts.next(0)) is not None:
        assert turn[1] == LoginAccepted("guest")
        rest.append(turn[0])
    assert len(rest) == len(crowd) - 1


def test_a_failure_is_answered_after_a_while_and_logged_without_the_password(
    attempts: LoginAttempts, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = attempt(), attempt(b"never seen either")
    attempts.begin(one, 0)
    attempts.begin(other, 0)
    turn = attempts.next(0)
    assert turn is not None and isinstance(turn[1], PasswordCheck)
    assert attempts.verified(one, turn[1], fits=False, now_ms=0) is None
    assert attempts.next(0) is None, "another guess at the same user waits for the refusal"
    assert attempts.due(FIRST_WAIT_MS - 1) == []
    assert attempts.due(SECOND_MS) == [one]
    turn = attempts.next(SECOND_MS)
    assert turn is not None and turn[0] == other
    assert [record.getMessage() for record in caplog.records] == [
        "login from 192.0.2.7:50000 failed: unknown user or wrong password for 'guest'"
    ]


def test_an_attempt_that_was_given_up_is_not_checked(attempts: LoginAttempts) -> None:
    gone, waiting = attempt(), attempt()
    for one in (gone, waiting):
        attempts.begin(one, 0)
    assert isinstance(gone.who, LoginRequester)
    gone.who.give_up()
    assert list(turns(attempts)) == [waiting]


def test_an_attempt_whose_client_has_disconnected_is_not_checked(attempts: LoginAttempts) -> None:
    """A flood of guesses whose clients are gone keeps no other client waiting."""
    has_disconnected = False
    guess = attempt()
    flood = [guess._replace(who=LoginRequester(lambda _: None, lambda: has_disconnected)) for _ in range(50)]
    for one in (*flood, guess):
        attempts.begin(one, 0)
    has_disconnected = True
    assert list(turns(attempts)) == [guess]


def test_a_failure_from_another_address_delays_no_login(attempts: LoginAttempts) -> None:
    guesser, victim = attempt(), attempt(address="192.0.2.99")
    attempts.begin(guesser, 0)
    turn = attempts.next(0)
    assert turn is not None and isinstance(turn[1], PasswordCheck)
    attempts.verified(guesser, turn[1], fits=False, now_ms=0)
    attempts.begin(victim, 0)
    assert list(turns(attempts)) == [victim]


def with_users(attempts: LoginAttempts, *names: str) -> LoginAttempts:
    for name in names:
        command = PutUser(name, hash_password(b"right", b"salt", 1), SCRYPT, ())
        attempts.logins._broker.administration.submit(command, lambda _: None, 0)
    return attempts


def hashes_before(attempts: LoginAttempts, good: LoginAttempt) -> int:
    """How many passwords are held against hashes before that of the good one, all of them wrong."""
    for count in range(1_000):
        turn = attempts.next(0)
        assert turn is not None and isinstance(turn[1], PasswordCheck)
        if turn[0] is good:
            return count
        attempts.verified(turn[0], turn[1], fits=False, now_ms=0)
    raise AssertionError("it never gets its turn")


@pytest.mark.proves("R38")
@pytest.mark.parametrize("address", ["192.0.2.7", "198.51.100.1"])
@pytest.mark.parametrize(
    "crowd",
    [
        [attempt(user=f"nobody{number}") for number in range(200)],
        [attempt(user=f"nobody{number}", address=f"203.0.113.{number}") for number in range(200)],
        [attempt(user="ann", address=f"2001:db8::{number:x}") for number in range(200)],
        [attempt(user="ann", address=f"203.0.113.{number}") for number in range(200)],
    ],
)
def test_a_crowd_of_bad_logins_delays_a_good_first_one_by_one_hash(
    attempts: LoginAttempts, crowd: list[LoginAttempt], address: str
) -> None:
    """Each takes some 50 ms, so that a crowd in front of a good login would make it wait for ten seconds."""
    with_users(attempts, "ann", "bob")
    for one in crowd:
        attempts.begin(one, 0)
    turn = attempts.next(0)
    assert turn is not None and isinstance(turn[1], PasswordCheck)
    good = attempt(b"right", address, "bob")
    attempts.begin(good, 0)
    attempts.verified(turn[0], turn[1], fits=False, now_ms=0)
    assert hashes_before(attempts, good) == 0


@pytest.mark.parametrize("users", [["ann"], ["ann", "carl", "dora"]])
def test_a_crowd_that_keeps_coming_from_new_networks_delays_a_good_first_login_by_a_few_hashes(
    attempts: LoginAttempts, users: list[str]
) -> None:
    """Each guess is the first one of its user from its network, and newer than the good login."""
    with_users(attempts, *users, "bob")
    attempts.begin(attempt(user=users[0], address="203.0.113.1"), 0)
    turn = attempts.next(0)
    good = attempt(b"right", "192.0.2.7", "bob")
    attempts.begin(good, 0)
    hashes = 0
    while turn is not None and turn[0] is not good:
        assert isinstance(turn[1], PasswordCheck)
        for number in range(3):
            address = f"2001:db8:{hashes:x}:{number:x}::1"
            attempts.begin(attempt(user=users[(hashes + number) % len(users)], address=address), 0)
        attempts.verified(turn[0], turn[1], fits=False, now_ms=0)
        turn = attempts.next(0)
        hashes += 1
        assert hashes < 20, "at 50 ms each that is a second"
    assert turn is not None and hashes <= 2 * len(users)


@pytest.mark.parametrize("user", ["bob", "nobody"])
def test_a_wrong_password_is_refused_behind_the_crowd_whether_its_user_exists_or_not(
    attempts: LoginAttempts, user: str
) -> None:
    with_users(attempts, "bob")
    for number in range(10):
        attempts.begin(attempt(user=f"x{number}", address=f"203.0.113.{number}"), 0)
    guess = attempt(address="198.51.100.1", user=user)
    attempts.begin(guess, 0)
    now_ms, refused = 0, []
    while (turn := attempts.next(now_ms)) is not None:
        now_ms += 50
        assert isinstance(turn[1], PasswordCheck)
        attempts.verified(turn[0], turn[1], fits=False, now_ms=now_ms)
        refused += attempts.due(now_ms)
    assert guess not in refused, "it waits for as long as the crowd in front of it"
    assert guess in attempts.due(now_ms + SECOND_MS)


def test_a_user_with_a_quick_hash_is_refused_as_slowly_as_a_missing_user(attempts: LoginAttempts) -> None:
    """RabbitMQ's hashes take microseconds."""
    stored = b64encode(b"salt" + sha256(b"saltright").digest()).decode()
    command = PutUser("imported", stored, RABBITMQ_SHA256, ())
    attempts.logins._broker.administration.submit(command, lambda _: None, 0)
    attempts.begin(attempt(b"right", user="imported"), 0)
    turn = attempts.next(0)
    assert turn is not None and isinstance(turn[1], PasswordCheck)
    nobody = turn[1]._replace(user="nobody", password_hash=turn[1].nobody, hashing=SCRYPT, exists=False)
    begun = time.process_time()
    assert turn[1].fits()
    took = time.process_time() - begun
    begun = time.process_time()
    assert not nobody.fits()
    assert took > (time.process_time() - begun) / 4
