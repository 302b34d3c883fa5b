"""Declares the objects of a definitions document that the broker lacks; deletes nothing.

The document may be large, so it is decoded object by object, a few in each turn of the loop. All of it is checked
before anything changes: each object must have its required fields, of the right type. Then users, vhosts, permissions
and policies are set from the document, and exchanges, queues and bindings are declared as by a client of the importing
user, many at a time. The first object that the broker rejects ends the import with its reason; earlier changes stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pandomq.admin import limits
from pandomq.admin.access.last_administrator import administrates, check_left
from pandomq.admin.bodies import decode_fields, decode_value, split
from pandomq.admin.definitions_export import OPERATOR_POLICY, VHOST_LIMITS
from pandomq.admin.field_json import amqp_table
from pandomq.admin.names import read_tags, short
from pandomq.admin.refusals import Refusal, bad_request
from pandomq.broker.administration.passwords import RABBITMQ_SHA256
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutUser,
    PutVhost,
)
from pandomq.errors import Fault
from pandomq.fieldtable import FieldTable
from pandomq.methods import ExchangeBind, ExchangeDeclare, Method, QueueBind, QueueDeclare

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall

T = TypeVar("T")

ALL = ".*"


class Item:
    """One entry of a section; its errors name it."""

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

    def mapping(self, name: str) -> dict[str, Any]:
        return self._typed(name, dict, {}, "an object")

    def limits(self, name: str) -> dict[str, int | None]:
        """A missing one may be null, or an empty list, as in RabbitMQ."""
        if self._values.get(name) in (None, []):
            return {}
        values = self.mapping(name)
        for limit, value in values.items():
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise self.wrong(f"{name}: {limit} is not a whole number")
        return values

    def short(self, name: str, default: str | None = None) -> str:
        """A text that fits into a short string of the protocol."""
        text = self.text(name, default)
        return self._read(lambda: short(name, text))

    def tags(self) -> tuple[str, ...]:
        return self._read(lambda: read_tags(self._values.get("tags", "")))

    def arguments(self) -> FieldTable:
        return self._read(lambda: amqp_table(self._values.get("arguments", {})))

    def wrong(self, reason: object) -> Refusal:
        return bad_request(f"{self}: {reason}")

    def _read(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except Refusal as refusal:
            raise self.wrong(refusal.reason) from None

    def _typed(self, name: str, kind: type[T], default: T | None, expected: str) -> T:
        value = self._values.get(name, default)
        if value is None:
            raise self.wrong(f"{name} is missing")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(f"{name} is not {expected}")
        return value


class Document(msgspec.Struct):
    """The sections, each undecoded; other fields, such as versions, are ignored."""

    users: msgspec.Raw = msgspec.Raw(b"[]")
    vhosts: msgspec.Raw = msgspec.Raw(b"[]")
    permissions: msgspec.Raw = msgspec.Raw(b"[]")
    topic_permissions: msgspec.Raw = msgspec.Raw(b"[]")
    parameters: msgspec.Raw = msgspec.Raw(b"[]")
    policies: msgspec.Raw = msgspec.Raw(b"[]")
    exchanges: msgspec.Raw = msgspec.Raw(b"[]")
    queues: msgspec.Raw = msgspec.Raw(b"[]")
    bindings: msgspec.Raw = msgspec.Raw(b"[]")


class _Section:
    """A section: its objects, in order; may be read repeatedly."""

    def __init__(self, name: str, written: list[msgspec.Raw], vhost: str | None) -> None:
        self.name = name
        self._written = written
        self._vhost = vhost

    async def items(self) -> AsyncIterator[Item]:
        """Raises Refusal."""
        what = "policy" if self.name == "policies" else self.name.removesuffix("s")
        for number, written in enumerate(self._written):
            if len(bytes(written)) > limits.ITEM_BYTES_MAX:
                raise bad_request(f"{what}: an object is longer than {limits.ITEM_BYTES_MAX} bytes")
            if number % limits.SLICE_ROWS == 0:
                await asyncio.sleep(0)
            yield Item(what, decode_value(written), self._vhost)


_Commands = Callable[[Item], Iterator[AdministrativeCommand]]
_Declares = Callable[[Item], Method | None]


async def import_definitions(call: HttpCall, vhost: str | None) -> None:
    """Into one vhost, or with users and vhosts. Raises Refusal."""
    document = await decode_fields(call.octets, Document)
    administered: dict[str, _Commands] = {
        "users": _users,
        "vhosts": lambda item: _vhosts(call, item),
        "permissions": _permissions,
        "topic_permissions": _topic_permissions,
        "parameters": _parameters,
        "policies": lambda item: iter((_policy(item, operator=False),)),
    }
    declared: dict[str, _Declares] = {"exchanges": _exchange, "queues": _queue, "bindings": _binding}
    sections: list[_Section] = []
    for name in (*administered, *declared):
        if vhost is None or name not in _OF_ALL_VHOSTS:
            sections.append(_Section(name, await split(name, getattr(document, name)), vhost))
            await asyncio.sleep(0)
    await _check(call, sections, administered, declared)
    for section in sections:
        if section.name in administered:
            await _administer(call, section, administered[section.name])
        else:
            await _declare(call, section, declared[section.name])


_OF_ALL_VHOSTS = ("users", "vhosts", "permissions", "topic_permissions")


async def _check(
    call: HttpCall, sections: list[_Section], administered: dict[str, _Commands], declared: dict[str, _Declares]
) -> None:
    """Checks that every object of the document can be created. Raises Refusal."""
    users: dict[str, bool] = {}
    for section in sections:
        commands, declares = administered.get(section.name), declared.get(section.name)
        async for item in section.items():
            if commands is not None:
                for command in commands(item):
                    if isinstance(command, PutUser):
                        users[command.name] = administrates(command.tags, command.password_hash)
            elif declares is not None and declares(item) is not None:
                item.text("vhost")
    check_left(call, users, [name for name, is_administrator in users.items() if is_administrator])


# Settings of administrators.


async def _administer(call: HttpCall, section: _Section, commands: _Commands) -> None:
    async for item in section.items():
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
    yield PutUser(name, item.text("password_hash", ""), hashing, item.tags())
    of_user = item.limits("limits")
    if of_user:
        yield PutLimits("user", name, of_user)


def _vhosts(call: HttpCall, item: Item) -> Iterator[AdministrativeCommand]:
    name = item.text("name")
    new = not call.views.has_vhost(name)
    yield PutVhost(name, item.text("description", ""), item.tags())
    if new:
        # The creator of a vhost gets all rights in it; otherwise it could not declare what follows.
        yield PutPermissions(name, call.identity.name, ALL, ALL, ALL)


def _permissions(item: Item) -> Iterator[AdministrativeCommand]:
    patterns = (item.text("configure"), item.text("write"), item.text("read"))
    yield PutPermissions(item.text("vhost"), item.text("user"), *patterns)


def _topic_permissions(item: Item) -> Iterator[AdministrativeCommand]:
    rest = (item.text("exchange"), item.text("write"), item.text("read"))
    yield PutTopicPermissions(item.text("vhost"), item.text("user"), *rest)


def _parameters(item: Item) -> Iterator[AdministrativeCommand]:
    component, value = item.text("component"), item.mapping("value")
    if component == OPERATOR_POLICY:
        inner = Item("operator policy", {**value, "name": item.text("name")}, item.text("vhost"))
        yield _policy(inner, operator=True)
    elif component == VHOST_LIMITS:
        yield PutLimits("vhost", item.text("vhost"), item.limits("value"))
    else:
        raise item.wrong(f"component '{component}' is not supported")


def _policy(item: Item, *, operator: bool) -> PutPolicy:
    return PutPolicy(
        item.text("vhost"),
        item.text("name"),
        item.text("pattern"),
        item.text("apply-to", "all"),
        item.number("priority"),
        msgspec.json.encode(item.mapping("definition")),
        operator,
    )


# Objects that clients declare.


async def _declare(call: HttpCall, section: _Section, declares: _Declares) -> None:
    """Several at a time, in the order of the document within each vhost."""
    by_vhost: dict[str, list[tuple[Item, Method]]] = {}
    async for item in section.items():
        method = declares(item)
        if method is not None:
            some = by_vhost.setdefault(item.text("vhost"), [])
            some.append((item, method))
            if len(some) == limits.DECLARED_AT_ONCE:
                await _declare_some(call, item.text("vhost"), some)
                some.clear()
    for vhost, left in by_vhost.items():
        if left:
            await _declare_some(call, vhost, left)


async def _declare_some(call: HttpCall, vhost: str, declarations: list[tuple[Item, Method]]) -> None:
    try:
        async with call.client(vhost) as client:
            done = await client.ask_all([method for _, method in declarations])
            if done.fault is not None:
                raise declarations[done.answered][0].wrong(done.fault.reply_text)
    except Fault as fault:
        raise declarations[0][0].wrong(fault.reply_text) from None


def _exchange(item: Item) -> Method | None:
    name = item.short("name")
    if not name or name.startswith("amq."):
        return None
    return ExchangeDeclare(
        exchange=name,
        type=item.short("type"),
        durable=item.flag("durable"),
        auto_delete=item.flag("auto_delete"),
        internal=item.flag("internal"),
        arguments=item.arguments(),
    )


def _queue(item: Item) -> Method:
    return QueueDeclare(
        queue=item.short("name"),
        durable=item.flag("durable"),
        auto_delete=item.flag("auto_delete"),
        arguments=item.arguments(),
    )


def _binding(item: Item) -> Method:
    source, destination = item.short("source"), item.short("destination")
    routing_key = item.short("routing_key", "")
    arguments = item.arguments()
    if item.text("destination_type", "queue") == "exchange":
        return ExchangeBind(destination, source, routing_key, arguments=arguments)
    return QueueBind(destination, source, routing_key, arguments=arguments)
