"""The implementation of rabbitmqctl's commands. A command is one line of a table; most are lists, defined by their
columns."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
import typer

from pandomq import __version__
from pandomq.cli import members, trace
from pandomq.cli.api import Api
from pandomq.cli.failures import NoBroker
from pandomq.cli.objects import definitions, nouns, permissions, policies, users, vhosts
from pandomq.cli.objects.listing import fetch_noun, refuse_unknown_columns
from pandomq.cli.objects.nouns import Noun
from pandomq.cli.objects.passwords import read_password
from pandomq.cli.output import cell, print_json, print_table, say
from pandomq.cli.status import show_status

FORMATTERS: Final = ("table", "pretty_table", "json", "csv")
AWAIT_INTERVAL_S: Final = 0.5


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a command."""

    api: Api
    arguments: list[str]
    vhost: str
    formatter: str
    with_headers: bool
    timeout_s: float
    priority: int
    apply_to: str | None
    if_empty: bool
    if_unused: bool

    def argument(self, index: int) -> str | None:
        return self.arguments[index] if index < len(self.arguments) else None

    def print(self, columns: list[str], rows: list[list[object]]) -> None:
        match self.formatter:
            case "json":
                print_json(msgspec.json.encode([dict(zip(columns, row, strict=True)) for row in rows]))
            case "csv":
                writer = csv.writer(sys.stdout, lineterminator="\n")
                writer.writerows([columns] if self.with_headers else [])
                writer.writerows([_text(value) for value in row] for row in rows)
            case _:
                texts: list[list[object]] = [[_text(value) for value in row] for row in rows]
                print_table(columns, texts, with_headers=self.with_headers)


class Word(msgspec.Struct, frozen=True):
    usage: str
    """NAME is required, [NAME] is optional, … may be repeated."""
    run: Callable[[Order], None]

    def takes(self, count: int) -> bool:
        parts = self.usage.split()
        least = sum(not part.startswith("[") for part in parts)
        return least <= count and (count <= len(parts) or self.usage.endswith("…"))


def _text(value: object) -> str:
    """In rabbitmqctl's form: lists in brackets, names in them without quotes."""
    text = cell(value)
    return f"[{text}]" if isinstance(value, list) and not text.startswith("[") else text


def _lists(noun: Noun, columns: str, *, of_vhost: bool = True, fixed: bool = False) -> Word:
    """Lists a noun by the requested columns, or else by these."""

    def run(order: Order) -> None:
        wanted = order.arguments or columns.split()
        items: list[dict[str, Any]] = msgspec.json.decode(
            fetch_noun(order.api, noun, order.vhost if of_vhost else None)
        )
        refuse_unknown_columns(noun, items, wanted)
        order.print(wanted, [[noun.value(item, column) for column in wanted] for item in items])

    return Word("" if fixed else "[COLUMN]…", run)


def _lists_of_user(noun: Noun, columns: str) -> Word:
    def run(order: Order) -> None:
        items: list[dict[str, Any]] = order.api.get("users", order.arguments[0], noun.path)
        order.print(columns.split(), [[noun.value(item, column) for column in columns.split()] for item in items])

    return Word("USER", run)


def _add_user(order: Order) -> None:
    user, password = order.arguments[0], order.argument(1)
    users.add_user(order.api, user, password or read_password(None, user), [])


def _change_password(order: Order) -> None:
    user, password = order.arguments[0], order.argument(1)
    users.change_password(order.api, user, password or read_password(None, user))


def _authenticate_user(order: Order) -> None:
    user, password = order.arguments[0], order.argument(1)
    login = f"{quote(user, safe='')}:{quote(password or read_password(None, user), safe='')}"
    scheme, _, place = order.api.address.partition("://")
    Api(f"{scheme}://{login}@{place}").get("whoami")
    say(f"the password of user '{user}' is correct")


def _set_policy(operator: bool) -> Callable[[Order], None]:
    def run(order: Order) -> None:
        name, pattern, text = order.arguments
        definition = policies.parse_definition(text)
        policies.set_policy(order.api, operator, order.vhost, name, pattern, definition, order.priority, order.apply_to)

    return run


def _purge_queue(order: Order) -> None:
    (queue,) = order.arguments
    order.api.delete("queues", order.vhost, queue, "contents")
    say(f"queue '{queue}' in vhost '{order.vhost}' is purged")


def _delete_queue(order: Order) -> None:
    (queue,) = order.arguments
    wishes = {"if-empty": order.if_empty, "if-unused": order.if_unused}
    order.api.delete("queues", order.vhost, queue, query={wish: "true" for wish, is_set in wishes.items() if is_set})
    say(f"queue '{queue}' in vhost '{order.vhost}' is deleted")


def _close_connection(order: Order) -> None:
    name, reason = order.arguments
    _close(order.api, name, reason)


def _close_all_connections(order: Order) -> None:
    (reason,) = order.arguments
    found: list[dict[str, Any]] = msgspec.json.decode(fetch_noun(order.api, nouns.CONNECTIONS, order.vhost))
    for connection in found:
        _close(order.api, connection["name"], reason)


def _close(api: Api, name: str, reason: str) -> None:
    # A header contains no newline, and only Latin-1.
    api.delete("connections", name, headers={"X-Reason": cell(reason).encode("ascii", "replace").decode()})
    say(f"connection {name} is closed")


def _ping(order: Order) -> None:
    order.api.get("whoami")
    sys.stdout.write("Ping succeeded\n")


def _await_startup(order: Order) -> None:
    end_s = time.monotonic() + order.timeout_s
    while True:
        try:
            order.api.get("whoami")
        except NoBroker:
            if time.monotonic() + AWAIT_INTERVAL_S > end_s:
                raise
            time.sleep(AWAIT_INTERVAL_S)
        else:
            return


def _set_user_tags(order: Order) -> None:
    users.set_tags(order.api, order.arguments[0], order.arguments[1:])


def _export(order: Order) -> None:
    definitions.export_definitions(order.api, Path(order.argument(0) or "-"), None)


def _version(order: Order) -> None:
    typer.echo(__version__)


def _status(order: Order) -> None:
    show_status(order.api, order.formatter == "json")


WORDS: Final[dict[str, Word]] = {
    "status": Word("", _status),
    "cluster_status": Word("", _status),
    "ping": Word("", _ping),
    "await_startup": Word("", _await_startup),
    "forget_cluster_node": Word("NAME", lambda order: members.remove_member(order.api, *order.arguments)),
    "version": Word("", _version),
    "list_queues": _lists(nouns.QUEUES, "name messages"),
    "list_exchanges": _lists(nouns.EXCHANGES, "name type"),
    "list_bindings": _lists(
        nouns.BINDINGS, "source_name source_kind destination_name destination_kind routing_key arguments"
    ),
    "list_connections": _lists(nouns.CONNECTIONS, "user peer_host peer_port state", of_vhost=False),
    "list_channels": _lists(nouns.CHANNELS, "pid user consumer_count messages_unacknowledged", of_vhost=False),
    "list_consumers": _lists(
        nouns.CONSUMERS, "queue_name channel_pid consumer_tag ack_required prefetch_count active arguments"
    ),
    "purge_queue": Word("QUEUE", _purge_queue),
    "delete_queue": Word("QUEUE", _delete_queue),
    "close_connection": Word("NAME REASON", _close_connection),
    "close_all_connections": Word("REASON", _close_all_connections),
    "list_users": _lists(nouns.USERS, "user tags", of_vhost=False, fixed=True),
    "add_user": Word("USER [PASSWORD]", _add_user),
    "delete_user": Word("USER", lambda order: users.delete_user(order.api, *order.arguments)),
    "change_password": Word("USER [PASSWORD]", _change_password),
    "authenticate_user": Word("USER [PASSWORD]", _authenticate_user),
    "set_user_tags": Word("USER [TAG]…", _set_user_tags),
    "list_vhosts": _lists(nouns.VHOSTS, "name", of_vhost=False),
    "add_vhost": Word("VHOST", lambda order: vhosts.add_vhost(order.api, *order.arguments)),
    "delete_vhost": Word("VHOST", lambda order: vhosts.delete_vhost(order.api, *order.arguments)),
    "trace_on": Word("", lambda order: trace.trace_on(order.api, order.vhost)),
    "trace_off": Word("", lambda order: trace.trace_off(order.api, order.vhost)),
    "list_permissions": _lists(nouns.PERMISSIONS, "user configure write read", fixed=True),
    "list_user_permissions": _lists_of_user(nouns.PERMISSIONS, "vhost configure write read"),
    "set_permissions": Word(
        "USER CONFIGURE WRITE READ",
        lambda order: permissions.set_permissions(order.api, order.vhost, *order.arguments),
    ),
    "clear_permissions": Word(
        "USER", lambda order: permissions.clear_permissions(order.api, order.vhost, *order.arguments)
    ),
    "list_topic_permissions": _lists(nouns.TOPIC_PERMISSIONS, "user exchange write read", fixed=True),
    "list_user_topic_permissions": _lists_of_user(nouns.TOPIC_PERMISSIONS, "vhost exchange write read"),
    "set_topic_permissions": Word(
        "USER EXCHANGE WRITE READ",
        lambda order: permissions.set_topic_permissions(order.api, order.vhost, *order.arguments),
    ),
    "clear_topic_permissions": Word(
        "USER", lambda order: permissions.clear_topic_permissions(order.api, order.vhost, *order.arguments)
    ),
    "list_policies": _lists(nouns.POLICIES, "vhost name pattern apply-to definition priority", fixed=True),
    "set_policy": Word("NAME PATTERN DEFINITION", _set_policy(operator=False)),
    "clear_policy": Word("NAME", lambda order: policies.clear_policy(order.api, False, order.vhost, *order.arguments)),
    "list_operator_policies": _lists(
        nouns.OPERATOR_POLICIES, "vhost name pattern apply-to definition priority", fixed=True
    ),
    "set_operator_policy": Word("NAME PATTERN DEFINITION", _set_policy(operator=True)),
    "clear_operator_policy": Word(
        "NAME", lambda order: policies.clear_policy(order.api, True, order.vhost, *order.arguments)
    ),
    "export_definitions": Word("[FILE]", _export),
    "import_definitions": Word(
        "FILE", lambda order: definitions.import_definitions(order.api, Path(order.arguments[0]), None)
    ),
}
