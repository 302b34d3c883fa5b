"""Attempts to log in, from the question to the answer, over AMQP or HTTP.

Who is known comes in at once. Where a password has to be held against its slow hash, the attempt waits in line for it;
one that failed waits as its address deserves before it hears so, and is logged. Passwords never are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pandomq.node.deadlines import Deadlines
from pandomq.node.login_line import LoginLine
from pandomq.node.logins import Logins, Question, Refusal, Welcome
from pandomq.node.penalties import Penalties

if TYPE_CHECKING:
    from pandomq.node.link import Link
    from pandomq.wire.inputs import Login

log = logging.getLogger("pandomq")


class Caller:
    """Who wants to be let in, and is no connection of AMQP: a request over HTTP, a client of the data port."""

    __slots__ = ("_gave_up", "_hung_up", "certificate_name", "on_answer")

    def __init__(
        self,
        on_answer: Callable[[Welcome | None], None],
        hung_up: Callable[[], bool],
        certificate_name: str | None = None,
    ) -> None:
        """`on_answer` is told None for a refusal. `hung_up` says whether anybody is left to hear it. The name is that
        in the certificate that it showed."""
        self.on_answer = on_answer
        self._hung_up = hung_up
        self.certificate_name = certificate_name
        self._gave_up = False

    @property
    def gone(self) -> bool:
        return self._gave_up or self._hung_up()

    def give_up(self) -> None:
        """It does not wait any longer."""
        self._gave_up = True


class Attempt(NamedTuple):
    who: Link | Caller
    peer_name: str
    address: str
    login: Login
    certificate_name: str | None
    from_loopback: bool


class Attempts:
    __slots__ = ("_line", "_penalties", "_refusals", "logins")

    def __init__(self, logins: Logins, now_ms: int) -> None:
        self.logins = logins
        self._line: LoginLine[Attempt] = LoginLine()
        self._penalties = Penalties()
        self._refusals: Deadlines[Attempt] = Deadlines(now_ms)

    def begin(self, attempt: Attempt, now_ms: int) -> Welcome | None:
        """None: it is not decided, or its refusal waits. Then `next` and `due` will tell."""
        answer = self._ask(attempt)
        if isinstance(answer, Question):
            self._line.put(attempt.address, attempt.login.user, attempt)
            return None
        return self._settle(attempt, answer, now_ms)

    def next(self, now_ms: int) -> tuple[Attempt, Question | Welcome] | None:
        """Whose turn it is: to have a question answered outside, or let in, as its password was learnt meanwhile."""
        while (attempt := self._line.take()) is not None:
            answer = self._ask(attempt)
            if isinstance(answer, Question) and not attempt.who.gone:
                return attempt, answer
            self._line.answered(attempt.address, attempt.login.user, rests=False)
            if not attempt.who.gone and not isinstance(answer, Question):
                welcome = self._settle(attempt, answer, now_ms)
                if welcome is not None:
                    return attempt, welcome
        return None

    def verified(self, attempt: Attempt, question: Question, *, fits: bool, now_ms: int) -> Welcome | None:
        """The answer to the question."""
        answer = self.logins.learn(question, fits=fits)
        self._line.answered(attempt.address, attempt.login.user, rests=isinstance(answer, Refusal))
        return self._settle(attempt, answer, now_ms)

    def due(self, now_ms: int) -> list[Attempt]:
        """Those who are to hear now that they are refused."""
        due = self._refusals.take_due(now_ms)
        for attempt in due:
            self._line.rested(attempt.address, attempt.login.user)
        return due

    def _ask(self, attempt: Attempt) -> Welcome | Refusal | Question:
        return self.logins.ask(attempt.login, attempt.certificate_name, from_loopback=attempt.from_loopback)

    def _settle(self, attempt: Attempt, answer: Welcome | Refusal, now_ms: int) -> Welcome | None:
        if isinstance(answer, Welcome):
            self._penalties.succeeded(attempt.address)
            return answer
        log.warning("login from %s refused: %s", attempt.peer_name, answer.reason)
        self._refusals.put(attempt, now_ms + self._penalties.failed(attempt.address, now_ms))
        return None
