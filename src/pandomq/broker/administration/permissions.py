"""One user's rights in one vhost: patterns for names, and for the routing keys of topic exchanges.

Results are cached, since the same names are checked again and again; they are dropped when a permission changes, and
with them the plans of the user's messages, which depend on them.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from pandomq import kernel
from pandomq.broker.administration.patterns import Pattern, compile_pattern
from pandomq.limits import PERMISSION_ANSWERS_CACHED_MAX

_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}-")


class Right(IntEnum):
    CONFIGURE = 0
    WRITE = 1
    READ = 2


class Permissions(NamedTuple):
    configure: str
    write: str
    read: str


_NO_NAMES: Final = ("", "^$")
"""How administrators write that a user has no right on any object."""

ALL_RIGHTS: Final = Permissions(".*", ".*", ".*")


class TopicPermissions(NamedTuple):
    write: str
    read: str


class VhostAccess:
    """Shared by all connections of the user to the vhost."""

    __slots__ = (
        "_answers",
        "_patterns",
        "_routes_elsewhere",
        "_routes_max",
        "_topic_answers",
        "_topic_patterns",
        "_vhost",
        "permissions",
        "routes",
        "topics",
        "user",
    )

    def __init__(self, user: str, vhost: str, routes_max: int) -> None:
        self.user = user
        self._vhost = vhost
        self._routes_max = routes_max
        self.routes = kernel.Routes(routes_max)
        """The cached routes of the user's messages; they include the check of the right to write."""
        self._routes_elsewhere: dict[str, kernel.Routes] = {}
        """The routes for messages that come from another broker, by the broker: no message goes back there."""
        self.permissions: Permissions | None = None
        """None: the user may not even enter."""
        self.topics: dict[str, TopicPermissions] = {}
        """By exchange. Where there are none, all keys are allowed."""
        self._patterns: tuple[Pattern, ...] = ()
        self._topic_patterns: dict[str, dict[Right, Pattern]] = {}
        self._answers: tuple[dict[str, bool], ...] = ({}, {}, {})
        self._topic_answers: dict[tuple[Right, str, str], bool] = {}

    # Changes.

    def grant(self, permissions: Permissions) -> None:
        self.permissions = permissions
        self._patterns = tuple(map(name_pattern, permissions))
        self._forget()

    def grant_topic(self, exchange: str, topic: TopicPermissions) -> None:
        self.topics[exchange] = topic
        self._topic_patterns[exchange] = {
            Right.WRITE: topic_pattern(topic.write, self.user, self._vhost),
            Right.READ: topic_pattern(topic.read, self.user, self._vhost),
        }
        self._forget()

    def revoke(self) -> None:
        self.permissions = None
        self._patterns = ()
        self._forget()

    def revoke_topic(self, exchange: str) -> None:
        """No name means all exchanges."""
        for name in [exchange] if exchange else list(self.topics):
            if name in self.topics:
                del self.topics[name], self._topic_patterns[name]
        self._forget()

    def _forget(self) -> None:
        for answers in self._answers:
            answers.clear()
        self._topic_answers.clear()
        self.routes.clear()
        for routes in self._routes_elsewhere.values():
            routes.clear()

    # Queries.

    def routes_of(self, origin: str | None) -> kernel.Routes:
        """For clients of that broker; None: for clients of this one. There are no more of them than brokers."""
        if origin is None:
            return self.routes
        routes = self._routes_elsewhere.get(origin)
        if routes is None:
            routes = self._routes_elsewhere[origin] = kernel.Routes(self._routes_max)
        return routes

    def allows(self, right: Right, name: str) -> bool:
        if not self._patterns:
            return False
        pattern = self._patterns[right]
        if pattern.matches_all:
            return True
        answers = self._answers[right]
        answer = answers.get(name)
        if answer is None:
            answer = pattern.matches(name)
            if len(answers) >= PERMISSION_ANSWERS_CACHED_MAX:
                answers.clear()
            answers[name] = answer
        return answer

    def allows_some(self, right: Right) -> bool:
        """Whether there may be a name for which the user has this right: its pattern is not one of those that match
        nothing."""
        return self.permissions is not None and self.permissions[right] not in _NO_NAMES

    def allows_topic(self, right: Right, exchange: str, routing_key: str) -> bool:
        """`right` is to write or to read."""
        patterns = self._topic_patterns.get(exchange)
        if patterns is None:
            return True
        question = (right, exchange, routing_key)
        answer = self._topic_answers.get(question)
        if answer is None:
            answer = patterns[right].matches(routing_key)
            if len(self._topic_answers) >= PERMISSION_ANSWERS_CACHED_MAX:
                self._topic_answers.clear()
            self._topic_answers[question] = answer
        return answer


def name_pattern(source: str) -> Pattern:
    """Raises PatternError. No pattern means no name, as in RabbitMQ."""
    return compile_pattern(source or "^$")


def topic_pattern(source: str, user: str, vhost: str) -> Pattern:
    """Compiles a pattern of routing keys, in which {username} and {vhost} stand for the names.

    RabbitMQ's {client_id} is that of MQTT; for an AMQP client it is literal text there, and so it is here.
    """
    for variable, value in (("{username}", user), ("{vhost}", vhost)):  # noqa: RUF027 - variables of patterns
        source = source.replace(variable, _escaped(value))
    return name_pattern(source)


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in _SPECIAL else character for character in text)
