"""Attempts as one user from one network: a good login waits for a bounded time behind guesses at the same user."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from pandomq.broker.administration.passwords import SCRYPT, hash_password
from pandomq.broker.log.commands import PutUser
from pandomq.limits import HANDSHAKE_MS_MAX, LOGIN_PASSWORDS_WAITING_MAX
from pandomq.node.clients.attempts import LoginAttempt, LoginAttempts, LoginRequester
from pandomq.node.clients.deadlines import BUCKET_MS
from pandomq.node.clients.logins import LoginAccepted, PasswordCheck

from .test_attempts import attempt, attempts, with_users

__all__ = ["attempts"]

HASH_MS = 50


class Course:
    """Plays the time in which attempts are decided."""

    def __init__(self, attempts: LoginAttempts) -> None:
        self.attempts = with_users(attempts, "ann")
        self.now_ms = 0
        self.hashes = 0
        self.welcomed: dict[int, int] = {}
        """When, by the attempts' place in memory: many are equal."""
        self.refused: dict[int, int] = {}

    def begin(self, coming: Sequence[LoginAttempt]) -> None:
        for one in coming:
            assert self.attempts.begin(one, self.now_ms) is None

    def run(self, end_ms: int) -> None:
        while self.now_ms < end_ms:
            self.now_ms += HASH_MS
            for one in self.attempts.due(self.now_ms):
                assert id(one) not in self.refused
                self.refused[id(one)] = self.now_ms
            while (turn := self.attempts.next(self.now_ms)) is not None:
                one, question = turn
                if isinstance(question, PasswordCheck):
                    self.hashes += 1
                    fits = question.exists and question.password == b"right"
                    if self.attempts.verified(one, question, fits=fits, now_ms=self.now_ms) is None:
                        break
                self.welcomed[id(one)] = self.now_ms

    def refused_by(self, time_ms: int, among: Sequence[LoginAttempt]) -> int:
        return sum(self.refused.get(id(one), time_ms + 1) <= time_ms for one in among)


def guesses(count: int, user: str = "ann") -> list[LoginAttempt]:
    return [attempt(f"guess {number}".encode(), user=user) for number in range(count)]


@pytest.mark.proves("R38")
@pytest.mark.parametrize("user", ["ann", "nobody"])
def test_guesses_beyond_the_bound_are_refused_at_once_whether_the_user_exists_or_not(
    attempts: LoginAttempts, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    course, flood = Course(attempts), guesses(1_000, user)
    course.begin(flood)
    course.run(BUCKET_MS)
    assert course.refused_by(BUCKET_MS, flood) == 1_000 - LOGIN_PASSWORDS_WAITING_MAX
    assert course.refused_by(BUCKET_MS, flood[:LOGIN_PASSWORDS_WAITING_MAX]) == 0
    assert len([record for record in caplog.records if "undecided" in record.getMessage()]) == 996
    # They do not end the pause of those that are checked, and none is checked.
    course.run(HANDSHAKE_MS_MAX)
    assert course.hashes == LOGIN_PASSWORDS_WAITING_MAX
    assert len(course.refused) == 1_000
    times = [course.refused[id(one)] for one in flood[:LOGIN_PASSWORDS_WAITING_MAX]]
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == sorted(pauses) and pauses[-1] >= 2_000
    assert attempts._undecided == {}


@pytest.mark.proves("R38")
def test_a_good_login_behind_guesses_from_the_same_network_waits_for_a_bounded_time(attempts: LoginAttempts) -> None:
    course, good = Course(attempts), attempt(b"right", user="ann")
    course.begin(guesses(LOGIN_PASSWORDS_WAITING_MAX - 1))
    course.begin([good])
    course.begin(guesses(1_000))
    course.run(HANDSHAKE_MS_MAX)
    assert course.welcomed[id(good)] < HANDSHAKE_MS_MAX


@pytest.mark.proves("R38")
def test_a_crowd_with_one_wrong_password_is_decided_together(attempts: LoginAttempts) -> None:
    """Its clients have the password of yesterday, and begin again and again."""
    course, good = Course(attempts), attempt(b"right", user="ann")
    crowd = [attempt(b"yesterday's", user="ann") for _ in range(1_000)]
    course.begin(crowd)
    course.begin([good])
    course.run(HANDSHAKE_MS_MAX)
    assert course.hashes == 2
    assert course.welcomed[id(good)] < 1_000
    assert all(course.refused[id(one)] >= BUCKET_MS for one in crowd)
    assert attempts._undecided == {}


def test_after_a_change_of_the_password_the_crowd_is_checked_again(attempts: LoginAttempts) -> None:
    course = Course(attempts)
    crowd = [attempt(b"right", user="ann") for _ in range(3)]
    course.begin(crowd)
    turn = attempts.next(0)
    assert turn is not None and isinstance(turn[1], PasswordCheck)
    assert attempts.verified(turn[0], turn[1], fits=False, now_ms=0) is None
    command = PutUser("ann", hash_password(b"right", b"other salt", 1), SCRYPT, ())
    attempts.logins._broker.administration.submit(command, lambda _: None, 0)
    course.run(HANDSHAKE_MS_MAX)
    assert set(course.welcomed) == {id(one) for one in crowd[1:]}


def test_a_crowd_of_one_network_with_the_right_password_is_admitted(attempts: LoginAttempts) -> None:
    course = Course(attempts)
    crowd = [attempt(b"right", user="ann") for _ in range(1_000)]
    course.begin(crowd)
    turn = attempts.next(0)
    assert turn is not None and isinstance(turn[1], PasswordCheck)
    question = turn[1]
    assert attempts.verified(turn[0], question, fits=True, now_ms=0) == LoginAccepted("ann")
    course.run(HASH_MS)
    assert (len(course.welcomed), course.refused) == (999, {})
    assert attempts._undecided == {}


@pytest.mark.proves("R38")
def test_clients_that_are_gone_take_no_place_of_those_that_wait(attempts: LoginAttempts) -> None:
    course, flood = Course(attempts), guesses(LOGIN_PASSWORDS_WAITING_MAX)
    course.begin(flood)
    for one in flood:
        assert isinstance(one.who, LoginRequester)
        one.who.give_up()
    good = attempt(b"right", user="ann")
    course.begin([good])
    course.run(HANDSHAKE_MS_MAX)
    assert id(good) in course.welcomed
