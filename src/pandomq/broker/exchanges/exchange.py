"""The common part of all exchanges.

An exchange knows its bindings and returns their destinations for a routing key and headers. It does not look beyond
these: the `Router` goes on through other exchanges and alternates, and removes duplicates.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.field_text import name_of

if TYPE_CHECKING:
    from pandomq.broker.administration.policies import Effect, Policy
    from pandomq.broker.publishing.delayed import DelayedMessages
    from pandomq.kernel import Queue

ALTERNATE_EXCHANGE = "alternate-exchange"


class QueueDestination(Destination, Protocol):
    """The router's view of a queue of the broker; it is hashed by identity."""

    @property
    def kernel(self) -> "Queue": ...


class ExchangeTraits(msgspec.Struct, frozen=True):
    """The properties that a declare gives an exchange besides name and type."""

    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Exchange:
    """Made by `catalogue.make_exchange`. Its bindings change through `Router.bind` and `Router.unbind` only.

    Subclasses define `_add`, `_drop` and `match`. (It is no ABC: `isinstance` of those is slow, and the router uses
    it.)
    """

    type_name: ClassVar[str]

    static: bool = True
    """The route depends on exchange and key only, so it can be cached."""
    keyed: bool = True
    """Each routing key of a message (CC, BCC) counts; otherwise only the first does."""

    chooses: bool = False
    """A message goes to one of the matching bindings: a broker that does not know all of them cannot determine
    which."""

    name: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Mapping[str, Any]
    alternate: str | None
    """The exchange for messages that match nothing here; it need not exist. Code that changes it calls
    `Router.changed`."""
    policy: "Effect | None" = None
    waiting: "DelayedMessages | None" = None
    """Only of x-delayed-message: where messages wait. Set by code that has an engine for its hidden queue."""

    def __init__(self, name: str, traits: ExchangeTraits) -> None:
        self.name = name
        self.durable = traits.durable
        self.auto_delete = traits.auto_delete
        self.internal = traits.internal
        self.arguments = traits.arguments
        # The default exchange cannot be an alternate: as in RabbitMQ, an empty name means none.
        self.alternate = name_of(self.arguments.get(ALTERNATE_EXCHANGE, "")) or None
        self._bindings: dict[Binding, Binding] = {}
        self._passed_over: set[Binding] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def follow(self, policy: "Effect | None") -> bool:
        """Applies the policy until the next call. True if the alternate has changed."""
        self.policy = policy
        before = self.alternate
        wanted = {} if policy is None else policy.definition
        self.alternate = name_of(self.arguments.get(ALTERNATE_EXCHANGE, wanted.get(ALTERNATE_EXCHANGE, ""))) or None
        return self.alternate != before

    def matched_by(self, policy: "Policy") -> bool:
        return policy.matches_exchange(self)

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> None:
        """For a declare: raises RabbitMQ's ChannelFault if this type cannot take the arguments."""

    def check_binding(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Raises RabbitMQ's ChannelFault for a binding that means nothing to this type."""

    def bind(self, binding: Binding, *, counts: bool = True) -> bool:
        """False if it was there already. A binding that does not count is listed, and routes nothing."""
        if binding in self._bindings:
            return False
        self._bindings[binding] = binding
        if counts:
            self._add(binding)
        else:
            self._passed_over.add(binding)
        return True

    def unbind(self, binding: Binding) -> bool:
        """False if the binding was not there."""
        known = self._bindings.pop(binding, None)
        if known is None:
            return False
        if known in self._passed_over:
            self._passed_over.remove(known)
        else:
            self._drop(known)
        return True

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        """The destinations for this key and these headers; duplicates are possible.

        `headers` may be a MessageHeaders, which also knows the other properties.
        """
        raise NotImplementedError

    def key_of(self, binding: Binding) -> str | None:
        """The only routing key whose route the binding can change; None if there are others."""
        return None

    def bindings(self) -> Collection[Binding]:
        return self._bindings.keys()

    @property
    def binding_count(self) -> int:
        return len(self._bindings)

    def _add(self, binding: Binding) -> None:
        raise NotImplementedError

    def _drop(self, binding: Binding) -> None:
        raise NotImplementedError


class DestinationCounts(dict[Destination, int]):
    """Destinations in the order of their first binding, each once, with the number of their bindings."""

    __slots__ = ()

    def add(self, destination: Destination) -> None:
        self[destination] = self.get(destination, 0) + 1

    def drop(self, destination: Destination) -> None:
        left = self[destination] - 1
        if left:
            self[destination] = left
        else:
            del self[destination]
