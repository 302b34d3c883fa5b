"""Who may come in, over AMQP or HTTP.

Decides by what is known; where a password has to be held against its slow hash, it gives a `Question` instead, whose
answer takes tens of milliseconds and is therefore found outside the loop (`Question.fits`, then `learn`).
Reasons of refusals are for the log: a client hears only that it was refused, and they never say a password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.broker.passwords import SALT_BYTES, SCRYPT, hash_password, verify_password
from pandomq.node.credentials import Credentials
from pandomq.wire.sasl import EXTERNAL

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.broker import Broker
    from pandomq.node.settings import NodeSettings
    from pandomq.wire.inputs import Login

KEY_BYTES: Final = 32


class Welcome(NamedTuple):
    user: str


class Refusal(NamedTuple):
    reason: str


class Question(NamedTuple):
    user: str
    password: bytes
    password_hash: str
    hashing: str
    exists: bool

    def fits(self) -> bool:
        """Slow. As slow for a user who does not exist, so that the time tells nothing about who does."""
        return verify_password(self.password, self.password_hash, self.hashing) and self.exists


class Secrets(NamedTuple):
    """Random octets. The key never leaves the process; the salt can be read in the hash it was used for."""

    key: bytes
    salt: bytes

    @classmethod
    def draw(cls, random: Random) -> Secrets:
        return cls(random.randbytes(KEY_BYTES), random.randbytes(SALT_BYTES))


class Logins:
    __slots__ = ("_broker", "_credentials", "_first_user", "_loopback_only_users", "_nobody")

    def __init__(self, settings: NodeSettings, broker: Broker, secrets: Secrets) -> None:
        self._broker = broker
        self.change_settings(settings)
        self._credentials = Credentials(secrets.key)
        password = settings.password.encode()
        self._nobody = hash_password(password, secrets.salt, settings.password_log_cost)
        self._first_user = settings.user
        self._credentials.remember(settings.user, self._nobody, password)

    def make_first_user(self, now_ms: int) -> None:
        """If there never was one."""
        self._broker.administration.bootstrap(self._first_user, self._nobody, now_ms)

    def change_settings(self, settings: NodeSettings) -> None:
        """Who may come from where; the first user stays."""
        self._loopback_only_users = frozenset(settings.loopback_only_users)

    def ask(self, login: Login, certificate_name: str | None, *, from_loopback: bool) -> Welcome | Refusal | Question:
        name = certificate_name if login.mechanism == EXTERNAL else login.user
        if name in self._loopback_only_users and not from_loopback:
            return Refusal(f"user {name!r} may connect from the loopback only")
        if login.mechanism == EXTERNAL:
            return self._ask_certificate(certificate_name)
        user = self._broker.administration.user(login.user)
        if user is None or not user.password_hash:
            return Question(login.user, login.password, self._nobody, SCRYPT, exists=False)
        if self._credentials.knows(user.name, user.password_hash, login.password):
            return Welcome(user.name)
        return Question(user.name, login.password, user.password_hash, user.hashing, exists=True)

    def learn(self, question: Question, *, fits: bool) -> Welcome | Refusal:
        """The answer to the question. The user may have gone, or got another password, while it was looked for."""
        user = self._broker.administration.user(question.user)
        if not fits or user is None or user.password_hash != question.password_hash:
            return Refusal(f"unknown user or wrong password for {question.user!r}")
        self._credentials.remember(question.user, question.password_hash, question.password)
        return Welcome(question.user)

    @property
    def have_users(self) -> bool:
        """Whether there ever was one. A broker that has read no log, or belongs to no cluster yet, knows nobody."""
        return self._broker.state.had_users

    def tags(self, name: str) -> tuple[str, ...]:
        user = self._broker.administration.user(name)
        return () if user is None else user.tags

    def _ask_certificate(self, name: str | None) -> Welcome | Refusal:
        if name is None:
            return Refusal("the client showed no certificate")
        if self._broker.administration.user(name) is None:
            return Refusal(f"the certificate's name {name!r} is not a user")
        return Welcome(name)
