"""`pandomq queues`, `exchanges`, `bindings`, …: a broker's objects, as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.failures import WrongUse
from pandomq.cli.objects.nouns import BINDINGS, CHANNELS, CONNECTIONS, CONSUMERS, EXCHANGES, QUEUES, STREAMS, Noun
from pandomq.cli.output import cell, print_json, print_table

Vhost = Annotated[str | None, typer.Option("--vhost", "-p", help="List only this vhost. Without it: all vhosts.")]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="Columns to show, by their names in this table or in the HTTP API. Without it: a few of each kind.",
    ),
]


def list_noun(api: Api, noun: Noun, vhost: str | None, columns: list[str] | None, json: bool) -> None:
    answer = fetch_noun(api, noun, vhost)
    if json and columns is None and not noun.of_type:
        print_json(answer)
        return
    items: list[dict[str, Any]] = msgspec.json.decode(answer)
    if noun.of_type:
        items = [item for item in items if item.get("type") == noun.of_type]
    if json and columns is None:
        print_json(msgspec.json.encode(items))
        return
    wanted = columns or list(noun.shown)
    refuse_unknown_columns(noun, items, wanted)
    if json:
        print_json(msgspec.json.encode([{column: noun.value(item, column) for column in wanted} for item in items]))
    else:
        print_table(wanted, [[noun.value(item, column) for column in wanted] for item in items])


def fetch_noun(api: Api, noun: Noun, vhost: str | None) -> bytes:
    if vhost is None:
        return api.fetch(noun.path)
    return api.fetch("vhosts", vhost, noun.path) if noun.vhosts_first else api.fetch(noun.path, vhost)


def refuse_unknown_columns(noun: Noun, items: list[dict[str, Any]], columns: list[str]) -> None:
    unknown = noun.unknown_columns(items, columns)
    if unknown:
        known = sorted({*noun.shown, *noun.names, *(field for item in items[:1] for field in item)})
        raise WrongUse(f"{cell(unknown[0])} is not a column of {noun.path}. Known: {', '.join(known)}")


def _command(noun: Noun, about: str) -> Callable[..., None]:
    def list_all(vhost: Vhost = None, columns: Columns = None, json: AsJson = False, url: Url = None) -> None:
        list_noun(Api.at(url), noun, vhost, columns.split(",") if columns else None, json)

    list_all.__doc__ = about
    return list_all


LISTINGS = {
    "queues": _command(QUEUES, "List queues with their messages, consumers and rates."),
    "streams": _command(STREAMS, "List streams with their offsets, sizes and readers."),
    "exchanges": _command(EXCHANGES, "List exchanges and their types."),
    "bindings": _command(BINDINGS, "List bindings with their source, routing key and destination."),
    "connections": _command(CONNECTIONS, "List client connections with their users, addresses and rates."),
    "channels": _command(CHANNELS, "List channels and their unacknowledged and unconfirmed messages."),
    "consumers": _command(CONSUMERS, "List consumers and their queues."),
}
