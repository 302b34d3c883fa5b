"""`pandomq queues`, `exchanges`, `bindings`, …: what a broker has, as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.failures import WrongUse
from pandomq.cli.nouns import BINDINGS, CHANNELS, CONNECTIONS, CONSUMERS, EXCHANGES, QUEUES, STREAMS, Noun
from pandomq.cli.output import cell, print_json, print_table

Vhost = Annotated[str | None, typer.Option("--vhost", "-p", help="Only of this vhost.")]
Columns = Annotated[
    str | None, typer.Option(metavar="A,B,…", help="These columns, by their names here or in the HTTP API.")
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
    "queues": _command(QUEUES, "Queues: what waits in them, who consumes, how fast."),
    "streams": _command(STREAMS, "Streams: from which offset to which, how large, who reads."),
    "exchanges": _command(EXCHANGES, "Exchanges and their types."),
    "bindings": _command(BINDINGS, "Bindings: from which exchange, by which key, to which queue or exchange."),
    "connections": _command(CONNECTIONS, "Connections: who, from where, how busy."),
    "channels": _command(CHANNELS, "Channels and what they have not settled yet."),
    "consumers": _command(CONSUMERS, "Consumers and the queues they are at."),
}
