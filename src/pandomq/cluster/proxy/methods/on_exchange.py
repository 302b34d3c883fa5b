"""Class exchange on a front: the root gets every request, and the front passes the answer on once the change has taken
effect here, too."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.naming import without_line_ends

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.methods import ExchangeBind, ExchangeDeclare, ExchangeDelete, ExchangeUnbind, Method


def declare(front: "Front", channel: "FrontChannel", method: "ExchangeDeclare") -> None:
    name = without_line_ends(method.exchange)
    exchanges = channel.client.vhost.router.exchanges
    ask(channel, method, lambda: name in exchanges)


def delete(front: "Front", channel: "FrontChannel", method: "ExchangeDelete") -> None:
    name = without_line_ends(method.exchange)
    exchanges = channel.client.vhost.router.exchanges
    ask(channel, method, lambda: name not in exchanges)


def bind(front: "Front", channel: "FrontChannel", method: "ExchangeBind") -> None:
    ask(channel, method, lambda: _is_bound(channel, method))


def unbind(front: "Front", channel: "FrontChannel", method: "ExchangeUnbind") -> None:
    ask(channel, method, lambda: not _is_bound(channel, method))


def _is_bound(channel: "FrontChannel", method: "ExchangeBind | ExchangeUnbind") -> bool:
    exchanges = channel.client.vhost.router.exchanges
    source, destination = exchanges.get(method.source), exchanges.get(method.destination)
    if source is None or destination is None:
        return False
    return Binding.to_exchange(method.source, destination, method.routing_key, method.arguments) in source.bindings()


def ask(
    channel: "FrontChannel",
    method: "Method",
    known: Callable[[], bool],
    heard: "Callable[[Method], None] | None" = None,
) -> None:
    """Sends the client's request to the root. The client gets the answer when it is `known` here, unless it wanted
    none; `heard` runs before that."""
    silent: bool = getattr(method, "no_wait", False)
    question = msgspec.structs.replace(method, no_wait=False) if silent else method

    def answered(answer: "Method", _message: "kernel.Message | None") -> None:
        channel.client.broker.awaiting.know(channel, known, lambda: give(answer))

    def give(answer: "Method") -> None:
        if heard is not None:
            heard(answer)
        if not silent:
            channel.reply(answer)

    channel.ask(question, answered)
