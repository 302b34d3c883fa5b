"""Attempts to log in, from the question to the answer, over AMQP or HTTP.

A client whose credentials are cached is admitted at once. If a password must be checked against its slow hash, the
attempt waits in line; a failed attempt is logged, and is refused after a wait that grows with the failures of its user
and its network. Passwords are never logged.

Attempts as one user from one network, a *pair*, are decided one after the other, with a pause after each failure. So
that guesses do not keep a good login of the same pair waiting for long, a pair has a bounded number of different
passwords that are not decided: an attempt with a further one is refused at once. Those with the same password wait for
one answer, however many they are: after a restart a thousand clients may come back with one password.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pandomq.limits import HANDSHAKE_MS_MAX, LOGIN_PASSWORDS_WAITING_MAX
from pandomq.node.clients.deadlines import Deadlines
from pandomq.node.clients.login_line import LoginLine
from pandomq.node.clients.logins import LoginAccepted, LoginRefused, Logins, PasswordCheck
from pandomq.node.clients.penalties import WAIT_MS_MAX, Penalties, network_of

if TYPE_CHECKING:
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.wire.inputs import Login

log = logging.getLogger("pandomq")

assert (LOGIN_PASSWORDS_WAITING_MAX - 1) * WAIT_MS_MAX < HANDSHAKE_MS_MAX, "the pauses before the last one"


class LoginRequester:
    """A client that wants to log in without an AMQP connection: a request over HTTP, a client of the data port."""

    __slots__ = ("_gave_up", "_has_disconnected", "certificate_name", "on_answer", "relayed")

    def __init__(
        self,
        on_answer: Callable[[LoginAccepted | None], None],
        has_disconnected: Callable[[], bool],
        certificate_name: str | None = None,
        *,
        relayed: bool = False,
    ) -> None:
        """`on_answer` is called with None for a refusal. `has_disconnected` returns whether the client has
        disconnected. The name is that in the client's certificate. A connection that a proxy relays does not come from
        the loopback."""
        self.on_answer = on_answer
        self._has_disconnected = has_disconnected
        self.certificate_name = certificate_name
        self.relayed = relayed
        self._gave_up = False

    @property
    def gone(self) -> bool:
        return self._gave_up or self._has_disconnected()

    def give_up(self) -> None:
        """The attempt waits no longer."""
        self._gave_up = True


class LoginAttempt(NamedTuple):
    who: ClientLink | LoginRequester
    peer_name: str
    address: str
    login: Login
    certificate_name: str | None
    from_loopback: bool


class _Waiting(NamedTuple):
    """One attempt in line."""

    attempt: LoginAttempt
    network: str
    first: bool
    """The attempt came through a first line."""
    refusal_ms: int | None = None
    """The password was wrong; the refusal waits so long once the common line has reached it."""


class _Refused(NamedTuple):
    """One attempt whose refusal waits."""

    attempt: LoginAttempt
    undecided: bool = False
    """The attempt counts among those of its pair until then."""
    rests: bool = False
    """Its pair pauses until then."""


class _Password:
    """A password of a pair that is not decided."""

    __slots__ = ("attempts", "wrong_for")

    def __init__(self) -> None:
        self.attempts: list[LoginAttempt] = []
        self.wrong_for: str | None = None
        """The hash that it does not fit: the other attempts need no answer of their own."""


class LoginAttempts:
    __slots__ = ("_asked", "_line", "_penalties", "_refusals", "_undecided", "logins")

    def __init__(self, logins: Logins, now_ms: int) -> None:
        self.logins = logins
        self._line: LoginLine[_Waiting] = LoginLine()
        self._asked: _Waiting | None = None
        """The attempt whose question is being answered."""
        self._penalties = Penalties()
        self._refusals: Deadlines[_Refused] = Deadlines(now_ms)
        self._undecided: dict[tuple[str, str], dict[bytes, _Password]] = {}
        """By network and user, the passwords of the attempts that wait for an answer, or for their refusal."""

    def begin(self, attempt: LoginAttempt, now_ms: int) -> LoginAccepted | None:
        """None: the attempt is not decided, or its refusal waits. Then `next` and `due` will return it."""
        answer = self._ask(attempt)
        if isinstance(answer, PasswordCheck):
            user, network = attempt.login.user, network_of(attempt.address)
            if not self._may_wait(attempt, network):
                # It may be the right password, so it is no failure.
                log.warning(
                    "login from %s failed: %d other passwords for %r from there are undecided",
                    attempt.peer_name,
                    LOGIN_PASSWORDS_WAITING_MAX,
                    user,
                )
                self._refusals.put(_Refused(attempt), now_ms)
                return None
            first = answer.exists and not self._penalties.has_failed(user, network, now_ms)
            guessed = self._penalties.is_guessed(user, now_ms)
            self._line.put(network, user, _Waiting(attempt, network, first), first=first, guessed=guessed)
            return None
        return self._settle(attempt, answer, now_ms)

    def next(self, now_ms: int) -> tuple[LoginAttempt, PasswordCheck | LoginAccepted] | None:
        """The next attempt: it needs an answer from outside, or is admitted because its password has become known
        meanwhile."""
        while (waiting := self._line.take()) is not None:
            attempt, user = waiting.attempt, waiting.attempt.login.user
            if waiting.refusal_ms is not None:
                self._line.answered(waiting.network, user, rests=False)
                self._refusals.put(_Refused(attempt, undecided=True, rests=True), now_ms + waiting.refusal_ms)
                continue
            answer: LoginAccepted | LoginRefused | PasswordCheck = self._ask(attempt)
            password = self._undecided[waiting.network, user][attempt.login.password]
            if isinstance(answer, PasswordCheck) and answer.password_hash == password.wrong_for:
                answer = self.logins.learn(answer, fits=False)
            if isinstance(answer, PasswordCheck) and not attempt.who.gone:
                self._asked = waiting
                return attempt, answer
            self._line.answered(waiting.network, user, rests=False)
            if attempt.who.gone or isinstance(answer, PasswordCheck):
                self._decided(attempt, waiting.network)
                continue
            welcome = self._settle(attempt, answer, now_ms, undecided=True)
            if welcome is not None:
                return attempt, welcome
        return None

    def verified(
        self, attempt: LoginAttempt, question: PasswordCheck, *, fits: bool, now_ms: int
    ) -> LoginAccepted | None:
        """Takes the answer to the question."""
        answer = self.logins.learn(question, fits=fits)
        waiting, self._asked = self._asked, None
        assert waiting is not None and waiting.attempt is attempt, "one question at a time"
        self._line.answered(waiting.network, attempt.login.user, rests=isinstance(answer, LoginRefused))
        if isinstance(answer, LoginRefused):
            password = self._undecided[waiting.network, attempt.login.user][attempt.login.password]
            password.wrong_for = question.password_hash
        if waiting.first and isinstance(answer, LoginRefused):
            wait_ms = self._count(attempt, answer, now_ms)
            self._line.put_refused(waiting.network, attempt.login.user, waiting._replace(refusal_ms=wait_ms))
            return None
        return self._settle(attempt, answer, now_ms, undecided=True, rests=True)

    def due(self, now_ms: int) -> list[LoginAttempt]:
        """The attempts whose refusals are due now."""
        due = self._refusals.take_due(now_ms)
        for attempt, undecided, rests in due:
            network = network_of(attempt.address)
            if undecided:
                self._decided(attempt, network)
            if rests:
                self._line.rested(network, attempt.login.user)
        return [refused.attempt for refused in due]

    def _may_wait(self, attempt: LoginAttempt, network: str) -> bool:
        """Counts the attempt among the undecided ones of its pair, if there is room."""
        pair, password = (network, attempt.login.user), attempt.login.password
        passwords = self._undecided.get(pair, {})
        if password not in passwords:
            waiting = sum(not all(one.who.gone for one in other.attempts) for other in passwords.values())
            if waiting >= LOGIN_PASSWORDS_WAITING_MAX:
                return False
        self._undecided[pair] = passwords
        passwords.setdefault(password, _Password()).attempts.append(attempt)
        return True

    def _decided(self, attempt: LoginAttempt, network: str) -> None:
        pair, password = (network, attempt.login.user), attempt.login.password
        passwords = self._undecided[pair]
        passwords[password].attempts.remove(attempt)
        if not passwords[password].attempts:
            del passwords[password]
        if not passwords:
            del self._undecided[pair]

    def _ask(self, attempt: LoginAttempt) -> LoginAccepted | LoginRefused | PasswordCheck:
        return self.logins.ask(attempt.login, attempt.certificate_name, from_loopback=attempt.from_loopback)

    def _settle(
        self,
        attempt: LoginAttempt,
        answer: LoginAccepted | LoginRefused,
        now_ms: int,
        *,
        undecided: bool = False,
        rests: bool = False,
    ) -> LoginAccepted | None:
        """`undecided`: the attempt counts among those of its pair. `rests`: after a refusal its pair pauses."""
        if isinstance(answer, LoginAccepted):
            network = network_of(attempt.address)
            if undecided:
                self._decided(attempt, network)
            if self._penalties:
                self._penalties.succeeded(attempt.login.user, network)
            return answer
        wait_ms = self._count(attempt, answer, now_ms)
        self._refusals.put(_Refused(attempt, undecided, rests), now_ms + wait_ms)
        return None

    def _count(self, attempt: LoginAttempt, refusal: LoginRefused, now_ms: int) -> int:
        """How many milliseconds the refusal waits."""
        log.warning("login from %s failed: %s", attempt.peer_name, refusal.reason)
        return self._penalties.failed(attempt.login.user, network_of(attempt.address), now_ms)
