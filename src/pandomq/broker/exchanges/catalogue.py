"""Which types of exchange there are, and which exchanges every vhost has from the start."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pandomq.broker.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from random import Random

TYPE_NAMES: tuple[str, ...]  # what exchange.declare accepts, sorted


def make_exchange(
    name: str,
    type_name: str,
    *,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    arguments: Mapping[str, Any],
    random: "Random",
) -> Exchange:
    """An exchange of a known type, with arguments that `exchange_arguments.check_declare` accepted."""
    ...


def predeclared(find_queue: Callable[[str], Any], random: "Random") -> list[Exchange]:
    """The default exchange and the amq.* ones; `find_queue` looks a queue up by name."""
    ...
