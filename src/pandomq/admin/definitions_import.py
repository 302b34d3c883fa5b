"""Declares what a document of definitions has and the broker lacks; deletes nothing.

Users, vhosts, permissions and policies are set as the document says. Exchanges, queues and bindings are declared like
by a client of the user who imports, many at a time; the first that the broker refuses ends the import with its reason,
and what came before it stays.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pandomq.admin import limits
from pandomq.admin.definitions_export import OPERATOR_POLICY, VHOST_LIMITS
from pandomq.admin.field_json import amqp_table
from pandomq.admin.names import read_tags, short
from pandomq.admin.refusals import Refusal, bad_request
from pandomq.broker.commands import (
    AdministrativeCommand,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutUser,
    PutVhost,
)
from pandomq.broker.passwords import RABBITMQ_SHA256
from pandomq.errors import Fault
from pandomq.methods import ExchangeBind, ExchangeDeclare, Method, QueueBind, QueueDeclare

if TYPE_CHECKING:
    from pandomq.admin.call import Call

T = TypeVar("T")

ALL = ".*"


class Item:
    """One entry of a section; says which one it is when something about it is wrong."""

    __slots__ = ("_values", "_what")

    def __init__(self, what: str, values: Any, vhost: str | None) -> None:
        if not isinstance(values, dict):
            raise bad_request(f"{what}: expected an object")
        self._values = values if vhost is None else {**values, "vhost": vhost}
        self._what = what

    def __str__(self) -> str:
        name = self._values.get("name") or self._values.get("source") or self._values.get("user")
        return f"{self._what} {name!r}"

    def text(self, name: str, default: str | None = None) -> str:
        return self._typed(name, str, default, "a string")

    def flag(self, name: str) -> bool:
        return self._typed(name, bool, False, "a boolean")

    def number(self, name: str) -> int:
        return self._typed(name, int, 0, "a whole number")

    def value(self, name: str, default: Any) -> Any:
        return self._values.get(name, default)

    def wrong(self, reason: object) -> Refusal:
        return bad_request(f"{self}: {reason}")

    def _typed(self, name: str, kind: type[T], default: T | None, expected: str) -> T:
        value = self._values.get(name, default)
        if value is None:
            raise self.wrong(f"{name} is missing")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(f"{name} is not {expected}")
        return value


async def import_definitions(call: Call, vhost: str | None) -> None:
    """Into one vhost, or with users and vhosts. Raises Refusal."""
    if vhost is None:
        await _administer(call, vhost, "users", _users)
        await _administer(call, vhost, "vhosts", lambda item: _vhosts(call, item))
        await _administer(call, vhost, "permissions", _permissions)
        await _administer(call, vhost, "topic_permissions", _topic_permissions)
    await _administer(call, vhost, "parameters", _parameters)
    await _administer(call, vhost, "policies", lambda item: iter((_policy(item, operator=False),)))
    await _declare(call, vhost, "exchanges", _exchange)
    await _declare(call, vhost, "queues", _queue)
    await _declare(call, vhost, "bindings", _binding)


def _items(call: Call, vhost: str | None, section: str) -> Iterator[Item]:
    values = call.value(section, [])
    if not isinstance(values, list):
        raise bad_request(f"{section}: expected a list")
    return (Item(section.removesuffix("s"), value, vhost) for value in values)


# What administrators set.


async def _administer(
    call: Call, vhost: str | None, section: str, commands: Callable[[Item], Iterator[AdministrativeCommand]]
) -> None:
    for item in _items(call, vhost, section):
        for command in commands(item):
            await _named(item, call.administer(command))


async def _named(item: Item, done: Awaitable[None]) -> None:
    try:
        await done
    except Refusal as refusal:
        raise item.wrong(refusal.reason) from None


def _users(item: Item) -> Iterator[AdministrativeCommand]:
    name = item.text("name")
    hashing = item.text("hashing_algorithm", RABBITMQ_SHA256)
    yield PutUser(name, item.text("password_hash", ""), hashing, read_tags(item.value("tags", "")))
    if item.value("limits", None):
        yield PutLimits("user", name, item.value("limits", {}))


def _vhosts(call: Call, item: Item) -> Iterator[AdministrativeCommand]:
    name = item.text("name")
    new = not call.views.has_vhost(name)
    yield PutVhost(name, item.text("description", ""), read_tags(item.value("tags", "")))
    if new:
        # Who makes a vhost may do everything in it; without that it could not declare what follows.
        yield PutPermissions(name, call.identity.name, ALL, ALL, ALL)


def _permissions(item: Item) -> Iterator[AdministrativeCommand]:
    patterns = (item.text("configure"), item.text("write"), item.text("read"))
    yield PutPermissions(item.text("vhost"), item.text("user"), *patterns)


def _topic_permissions(item: Item) -> Iterator[AdministrativeCommand]:
    rest = (item.text("exchange"), item.text("write"), item.text("read"))
    yield PutTopicPermissions(item.text("vhost"), item.text("user"), *rest)


def _parameters(item: Item) -> Iterator[AdministrativeCommand]:
    component, value = item.text("component"), item.value("value", {})
    if not isinstance(value, dict):
        raise item.wrong("value is not an object")
    if component == OPERATOR_POLICY:
        inner = Item("operator policy", {**value, "name": item.text("name")}, item.text("vhost"))
        yield _policy(inner, operator=True)
    elif component == VHOST_LIMITS:
        yield PutLimits("vhost", item.text("vhost"), value)
    else:
        raise item.wrong(f"component '{component}' is not known here")


def _policy(item: Item, *, operator: bool) -> PutPolicy:
    return PutPolicy(
        item.text("vhost"),
        item.text("name"),
        item.text("pattern"),
        item.text("apply-to", "all"),
        item.number("priority"),
        msgspec.json.encode(item.value("definition", {})),
        operator,
    )


# What clients declare.


async def _declare(call: Call, vhost: str | None, section: str, method: Callable[[Item], Method | None]) -> None:
    by_vhost: dict[str, list[tuple[Item, Method]]] = {}
    for item in _items(call, vhost, section):
        declared = method(item)
        if declared is not None:
            by_vhost.setdefault(item.text("vhost"), []).append((item, declared))
    for name, declarations in by_vhost.items():
        await _declare_all(call, name, declarations)


async def _declare_all(call: Call, vhost: str, declarations: list[tuple[Item, Method]]) -> None:
    left = iter(declarations)
    try:
        async with call.client(vhost) as client:
            while some := list(islice(left, limits.DECLARED_AT_ONCE)):
                done = await client.ask_all([method for _, method in some])
                if done.fault is not None:
                    raise some[done.answered][0].wrong(done.fault.reply_text)
    except Fault as fault:
        raise declarations[0][0].wrong(fault.reply_text) from None


def _exchange(item: Item) -> Method | None:
    name = short("exchange", item.text("name"))
    if not name or name.startswith("amq."):
        return None
    return ExchangeDeclare(
        exchange=name,
        type=short("type", item.text("type")),
        durable=item.flag("durable"),
        auto_delete=item.flag("auto_delete"),
        internal=item.flag("internal"),
        arguments=amqp_table(item.value("arguments", {})),
    )


def _queue(item: Item) -> Method:
    return QueueDeclare(
        queue=short("queue", item.text("name")),
        durable=item.flag("durable"),
        auto_delete=item.flag("auto_delete"),
        arguments=amqp_table(item.value("arguments", {})),
    )


def _binding(item: Item) -> Method:
    source, destination = short("exchange", item.text("source")), short("destination", item.text("destination"))
    routing_key = short("routing_key", item.text("routing_key", ""))
    arguments = amqp_table(item.value("arguments", {}))
    if item.text("destination_type", "queue") == "exchange":
        return ExchangeBind(destination, source, routing_key, arguments=arguments)
    return QueueBind(destination, source, routing_key, arguments=arguments)
