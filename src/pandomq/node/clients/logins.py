"""Decides which clients may log in, over AMQP or HTTP.

It decides by the passwords that it has verified before; if a password must be checked against its slow hash, it returns
a `PasswordCheck` instead, whose answer takes tens of milliseconds and is therefore computed outside the loop
(`PasswordCheck.fits`, then `learn`). Reasons of refusals are for the log: a client gets only the refusal, and reasons
never contain a password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.broker.administration.passwords import (
    SALT_BYTES,
    SCRYPT,
    hash_password,
    is_possible,
    spend,
    verify_password,
    work_of,
)
from pandomq.node.clients.credentials import CredentialCache
from pandomq.wire.sasl import EXTERNAL

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.broker import Broker
    from pandomq.node.settings import NodeSettings
    from pandomq.wire.inputs import Login

KEY_BYTES: Final = 32


class LoginAccepted(NamedTuple):
    user: str


class LoginRefused(NamedTuple):
    reason: str


class PasswordCheck(NamedTuple):
    user: str
    password: bytes
    password_hash: str
    hashing: str
    exists: bool
    nobody: str
    """The hash for a user who does not exist. Any answer takes at least as long as this one."""
    refusal_work: int
    """How slow every refusal is."""

    def fits(self) -> bool:
        """Slow, and as slow for a user who does not exist, or whose hash is quicker or slower than others, so that the
        time of a refusal does not reveal which users exist."""
        if not is_possible(self.password):
            return False
        fits = verify_password(self.password, self.password_hash, self.hashing) and self.exists
        work = work_of(self.nobody) if fits else self.refusal_work
        spend(work - work_of(self.password_hash, self.hashing))
        return fits


class Secrets(NamedTuple):
    """Random bytes. The key never leaves the process; the salt can be read in the hash it was used for."""

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
        self._credentials = CredentialCache(secrets.key)
        password = settings.password.encode()
        self._nobody = hash_password(password, secrets.salt, settings.password_log_cost)
        self._first_user = settings.user
        self._credentials.remember(settings.user, self._nobody, password)

    def make_first_user(self, now_ms: int) -> None:
        """Makes the first user if there never was one."""
        self._broker.administration.bootstrap(self._first_user, self._nobody, now_ms)

    def change_settings(self, settings: NodeSettings) -> None:
        """Changes which clients may connect from where; the first user stays."""
        self._loopback_only_users = frozenset(settings.loopback_only_users)

    def ask(
        self, login: Login, certificate_name: str | None, *, from_loopback: bool
    ) -> LoginAccepted | LoginRefused | PasswordCheck:
        name = certificate_name if login.mechanism == EXTERNAL else login.user
        if name in self._loopback_only_users and not from_loopback:
            return LoginRefused(f"user {name!r} may connect from this machine only")
        if login.mechanism == EXTERNAL:
            return self._ask_certificate(certificate_name)
        user = self._broker.administration.user(login.user)
        nobody, refusal_work = self._nobody, max(work_of(self._nobody), self._broker.state.password_work_max)
        if user is None or not user.password_hash:
            return PasswordCheck(login.user, login.password, nobody, SCRYPT, False, nobody, refusal_work)
        if self._credentials.knows(user.name, user.password_hash, login.password):
            return LoginAccepted(user.name)
        return PasswordCheck(user.name, login.password, user.password_hash, user.hashing, True, nobody, refusal_work)

    def learn(self, question: PasswordCheck, *, fits: bool) -> LoginAccepted | LoginRefused:
        """Takes the answer to the question. The user may have been deleted, or got another password, meanwhile."""
        user = self._broker.administration.user(question.user)
        if not fits or user is None or user.password_hash != question.password_hash:
            return LoginRefused(f"unknown user or wrong password for {question.user!r}")
        self._credentials.remember(question.user, question.password_hash, question.password)
        return LoginAccepted(question.user)

    @property
    def have_users(self) -> bool:
        """Whether there ever was a user. A broker that has read no log, or belongs to no cluster yet, knows none."""
        return self._broker.state.had_users

    def tags(self, name: str) -> tuple[str, ...]:
        user = self._broker.administration.user(name)
        return () if user is None else user.tags

    def _ask_certificate(self, name: str | None) -> LoginAccepted | LoginRefused:
        if name is None:
            return LoginRefused("the client presented no certificate")
        if self._broker.administration.user(name) is None:
            return LoginRefused(f"the certificate's name {name!r} is not the name of a user")
        return LoginAccepted(name)
