"""What all exchanges have in common.

An exchange knows its bindings and says, for a routing key and headers, where they lead; the `Router` follows the way
through further exchanges and removes doubles.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

from pandomq.broker.binding import Binding, Destination
from pandomq.kernel._fast import Queue


class QueueDestination(Destination, Protocol):
    """The router's view of a queue of the broker."""

    @property
    def kernel(self) -> Queue: ...


class Exchange(ABC):
    """Made by `catalogue.make_exchange`; its bindings change through `Router.bind` and `Router.unbind`."""

    static: bool = True  # the route depends on exchange and key only
    keyed: ClassVar[bool] = True  # each routing key of a message (CC, BCC) counts; False: only the first does

    name: str
    type_name: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Mapping[str, Any]
    alternate: str | None  # the exchange that gets what matches nothing here; it need not exist

    @abstractmethod
    def check_binding(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Raises the ChannelFault RabbitMQ gives for a binding that means nothing to this type."""

    @abstractmethod
    def bind(self, binding: Binding) -> bool:
        """False if it was there already."""

    @abstractmethod
    def unbind(self, binding: Binding) -> bool:
        """False if it was not there."""

    @abstractmethod
    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        """Where the bindings lead; doubles are possible."""

    @abstractmethod
    def bindings(self) -> Iterable[Binding]: ...

    @property
    @abstractmethod
    def binding_count(self) -> int: ...
