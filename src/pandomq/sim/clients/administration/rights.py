"""Users whose passwords and rights change while they work, on every broker.

The `RightsMaker` creates users, and grants and revokes rights. A `Visitor` logs in as one of them on any broker, with
the current password or with an older one, and tries the user's rights: to publish, to declare a queue of its own, to
get messages. Everything that a client was told before the trial began has to be in force (R16): a granted right works,
and a revoked one is refused, also on connections that used it before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.administration.passwords import SCRYPT, hash_password
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeletePermissions,
    DeleteTopicPermissions,
    DeleteUser,
    PutPermissions,
    PutTopicPermissions,
    PutUser,
)
from pandomq.methods import (
    BasicGet,
    BasicGetEmpty,
    ChannelClose,
    ConfirmSelect,
    ConfirmSelectOk,
    ConnectionClose,
    ExchangeDeclare,
    Method,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)
from pandomq.sim.clients.administration.administrator import Administrator
from pandomq.sim.clients.administration.prober import Course, Prober
from pandomq.sim.facts import Assumption, Fact, Facts
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.sim.scene import Scene

PROMISE: Final = "rights are in force everywhere"
PREFIX: Final = "r-user-"
TOPIC: Final = ExchangeDeclare("r-topic", "topic", durable=True)
QUEUE: Final = QueueDeclare("r-queue", durable=True)
OWN: Final = "r-own-"
PATTERNS: Final = (".*", "^r-", "^none$", "")
TOPIC_PATTERNS: Final = ("^a", "^b", ".*")
KEYS: Final = ("a.1", "b.1")
USERS_MAX: Final = 2
"""The maximum number of users that are not in doubt."""
LOGIN_REFUSED: Final = 403
VHOST_REFUSED: Final = 530
TRIALS_PER_CONNECTION: Final = 6
OLD_PASSWORD_CHANCE: Final = 0.3
LOGIN_CHANCE: Final = 0.5
"""The chance that a visitor that works as another user tries a new fact by logging in."""
WELCOME_CHANCE: Final = 0.85
"""The chance that a visitor chooses a user that may log in, if there is one."""


class Rights(msgspec.Struct, frozen=True):
    """The rights of a user."""

    passwords: tuple[str, ...]
    """The current password, then the previous ones; empty if the user was deleted."""
    permissions: tuple[str, str, str] | None = None
    """Patterns to configure, write, read; None if the user has no permissions in the vhost."""
    topic: str | None = None
    """The pattern of the keys that the user may write to the topic exchange; None for all keys."""

    @property
    def exists(self) -> bool:
        return bool(self.passwords)

    def allows(self, right: int, name: str) -> bool:
        if self.permissions is None or not self.exists:
            return False
        return re.search(self.permissions[right] or "^$", name) is not None

    def allows_key(self, key: str) -> bool:
        return self.topic is None or re.search(self.topic, key) is not None


class RightsMaker(Administrator[Rights]):
    @property
    def first(self) -> Sequence[Method]:
        return (TOPIC, QUEUE)

    def draw(self) -> tuple[AdministrativeCommand, Fact[Rights], Rights]:
        random = self.random
        users = [fact for fact in self.facts.certain() if fact.value is not None and fact.value.exists]
        if not users or (len(users) < USERS_MAX and random.random() < 0.3):
            return self._put_user(self.facts.new(f"{PREFIX}{len(self.facts)}"), Rights(()))
        fact = random.choice(users)
        now = fact.value
        assert now is not None
        if now.permissions is None or random.random() < 0.4:
            patterns = random.choice(PATTERNS), random.choice(PATTERNS), random.choice(PATTERNS)
            return PutPermissions("/", fact.name, *patterns), fact, msgspec.structs.replace(now, permissions=patterns)
        match random.randrange(8):
            case 0:
                return DeleteUser(fact.name), fact, Rights(())
            case 1 | 2:
                return self._put_user(fact, now)
            case 3 | 4:
                return DeletePermissions("/", fact.name), fact, msgspec.structs.replace(now, permissions=None)
            case 5 | 6 if now.topic is None or random.random() < 0.5:
                topic = random.choice(TOPIC_PATTERNS)
                command = PutTopicPermissions("/", fact.name, TOPIC.exchange, topic, ".*")
                return command, fact, msgspec.structs.replace(now, topic=topic)
            case _ if now.topic is None:
                return self._put_user(fact, now)
            case _:
                return DeleteTopicPermissions("/", fact.name), fact, msgspec.structs.replace(now, topic=None)

    def _put_user(self, fact: Fact[Rights], now: Rights) -> tuple[AdministrativeCommand, Fact[Rights], Rights]:
        password = f"secret-{self.random.getrandbits(32):x}"
        hashed = hash_password(password.encode(), self.random.randbytes(16), 1)
        after = msgspec.structs.replace(now, passwords=(password, *now.passwords))
        return PutUser(fact.name, hashed, SCRYPT, ()), fact, after


class Visitor(Prober):
    def __init__(self, scene: Scene, name: str, facts: Facts[Rights]) -> None:
        super().__init__(scene, name, facts)
        self._login: Assumption[Rights] | None = None
        """The rights on which its last login relied."""
        self._login_is_old = False
        """Whether it uses a previous password."""
        self._trials_here = 0
        self._declared = 0
        """The number of queues that it has declared, or was refused."""
        self._next: Fact[Rights] | None = None
        """The fact that it tries next by logging in."""
        self._wants_login = False
        """The faults are over, and it has neither logged in nor been rightly refused since."""

    # Logging in.

    @property
    def content(self) -> bool:
        return not self._wants_login or not self.facts.certain()

    def end_wish(self) -> None:
        self._wants_login = True
        self.cut()

    def told(self, fact: Fact[Rights]) -> None:
        if self.ready and self.concerns(fact):
            super().told(fact)
        elif not self.leaving and (self.cable is None or self.random.random() < LOGIN_CHANCE):
            self._next = fact
            self.cut()
            self.connect()

    def connect(self) -> None:
        if self.cable is not None or self.leaving:
            return
        certain = self.facts.certain()
        if not certain:
            self.scene.agenda.after(self.random.randint(5, 50), self.connect)
            return
        welcome = [fact for fact in certain if fact.value is not None and fact.value.permissions is not None]
        fact = self.random.choice(welcome if welcome and self.random.random() < WELCOME_CHANCE else certain)
        if self._next is not None and self._next.is_certain:
            fact = self._next
        self._next = None
        self._login = Assumption(fact)
        assert fact.value is not None
        old = fact.value.passwords[1:]
        self._login_is_old = bool(old) and self.random.random() < OLD_PASSWORD_CHANCE
        self.user = fact.name
        self.password = self.random.choice(old) if self._login_is_old else (*fact.value.passwords, "none")[0]
        super().connect()

    def opened(self) -> None:
        self._let_in(0)
        super().opened()

    def connection_refused(self, method: ConnectionClose) -> None:
        if method.reply_code not in (LOGIN_REFUSED, VHOST_REFUSED):
            super().connection_refused(method)
        self._let_in(method.reply_code)

    def _let_in(self, code: int) -> None:
        """The login was refused with this code, or accepted if `code` is 0."""
        login, self._login = self._login, None
        if login is None:
            # It logged in before, and has opened another channel.
            return
        self._wants_login = False
        if not login.holds or login.value is None:
            return
        expected = 0
        if not login.value.exists or self._login_is_old:
            expected = LOGIN_REFUSED
        elif login.value.permissions is None:
            expected = VHOST_REFUSED
        if code != expected:
            self._break(login, f"logs in with {'an old' if self._login_is_old else 'its'} password", code, expected)

    def disconnected(self) -> None:
        super().disconnected()
        self._todo.clear()
        self._trials_here = 0

    # Trials of rights.

    def concerns(self, fact: Fact[Rights]) -> bool:
        return fact.name == self.user

    def prepare(self) -> Course:
        self.send(ConfirmSelect())
        yield from self.await_answer(ConfirmSelectOk)

    def course(self, assumption: Assumption[Rights]) -> Course:
        self._trials_here += 1
        if self._trials_here > TRIALS_PER_CONNECTION:
            # The next trial is made on another broker, or as another user.
            self.scene.agenda.after(0, self.cut)
        return self.random.choice((self._write, self._write, self._configure, self._read))(assumption)

    def _write(self, assumption: Assumption[Rights]) -> Course:
        key = self.random.choice(KEYS)
        self.publish(TOPIC.exchange, key, b"trial")
        result = yield from self.await_confirms(1)
        self._judge(assumption, f"publishes with key {key}", result.closed, 1, TOPIC.exchange, key)

    def _configure(self, assumption: Assumption[Rights]) -> Course:
        # The broker may not have noticed yet that the last connection is gone, so its queue may still be there.
        self._declared += 1
        name = f"{OWN}{self.name}-{self._declared}"
        self.send(QueueDeclare(name, exclusive=True))
        method, _ = yield
        self._judge(assumption, f"declares {name}", method, 0, name)
        if isinstance(method, QueueDeclareOk):
            self.send(QueueDelete(name))
            method, _ = yield
            if not isinstance(method, QueueDeleteOk):
                self._judge(assumption, f"deletes {name}", method, 0, name)

    def _read(self, assumption: Assumption[Rights]) -> Course:
        self.send(BasicGet(QUEUE.queue))
        method, _ = yield
        if not isinstance(method, BasicGetEmpty | ChannelClose):
            raise self.unexpected(method)
        self._judge(assumption, "gets a message", method, 2, QUEUE.queue)

    def _judge(
        self, assumption: Assumption[Rights], what: str, answer: Method | None, right: int, name: str, key: str = ""
    ) -> None:
        refused = isinstance(answer, ChannelClose)
        if isinstance(answer, ChannelClose) and answer.reply_code != LOGIN_REFUSED:
            raise BrokenPromise("legal requests are served", f"{self.name}'s channel was closed: {answer}")
        if not assumption.holds or assumption.value is None:
            return
        allowed = assumption.value.allows(right, name) and (not key or assumption.value.allows_key(key))
        if refused == allowed:
            self._break(assumption, what, LOGIN_REFUSED if refused else 0, 0 if allowed else LOGIN_REFUSED)

    def _break(self, assumption: Assumption[Rights], what: str, code: int, expected: int) -> None:
        where = "no broker" if self.cable is None else self.cable.machine.name
        said = f"is refused with {code}" if code else "is served"
        raise BrokenPromise(
            PROMISE,
            f"{self.name} at {where} {what} as {assumption.fact.name} and {said}, not "
            f"{f'refused with {expected}' if expected else 'served'}; its rights are {assumption.value}",
        )


class LoginVisitor(Visitor):
    """Logs in on any broker as soon as a client was told of a change, and leaves again."""

    def told(self, fact: Fact[Rights]) -> None:
        if self.cable is None and not self.leaving:
            self._next = fact
            self.connect()

    def end_wish(self) -> None:
        super().end_wish()
        self.connect()

    def opened(self) -> None:
        self._let_in(0)
        self.cut()

    def _come_back(self) -> None:
        if self._wants_login or self.leaving:
            super()._come_back()
