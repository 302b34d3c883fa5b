"""`pandomq members`: who is in the cluster, and changing that; `pandomq promote`: who is to be its root."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from pandomq.cli.api import Api, AsJson, KeyFile, Url
from pandomq.cli.config.cluster import parse_primary
from pandomq.cli.failures import Refused, WrongUse
from pandomq.cli.output import cell, print_json, print_table, say
from pandomq.cli.status import member_rows
from pandomq.replica.quorum import elect_need

members_app = typer.Typer(name="members", help="The brokers of the cluster.", invoke_without_command=True)

COLUMNS: Final = ("name", "role", "address", "in_sync", "lag_bytes", "connections")
"""How far their logs are `pandomq status` tells."""

CHANGE_S_MAX: Final = 90.0
"""A newcomer may take a minute to catch up, and the broker says so when it did not."""

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@members_app.callback()
def members(context: typer.Context, json: AsJson = False, url: Url = None, key_file: KeyFile = None) -> None:
    """Lists the brokers of the cluster; `add` and `remove` change who votes."""
    context.obj = url, key_file
    if context.invoked_subcommand is None:
        answer = Api.at(url, key_file).fetch("cluster", "members")
        if json:
            print_json(answer)
        else:
            print_table(COLUMNS, member_rows(msgspec.json.decode(answer), COLUMNS))


@members_app.command("add")
def add(
    context: typer.Context,
    member: Annotated[str, typer.Argument(metavar="NAME=HOST:PORT", show_default=False)],
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Makes a broker a primary. It runs already, with the key of the cluster; it catches up first."""
    try:
        primary = parse_primary(member)
    except ValueError as error:
        raise WrongUse(str(error)) from None
    api = _api(context, url, key_file)
    api.put("cluster", "members", primary.name, body={"address": primary.address}, timeout_s=CHANGE_S_MAX)
    say(f"{primary.name} is a primary now")


@members_app.command("remove")
def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Makes a broker a primary no longer, whether it runs or not."""
    remove_member(_api(context, url, key_file), name)


def remove_member(api: Api, name: str) -> None:
    api.delete("cluster", "members", name, timeout_s=CHANGE_S_MAX)
    say(f"{name} is a primary no longer")


def _api(context: typer.Context, url: str | None, key_file: Path | None) -> Api:
    """Options may stand before the word or behind it."""
    url_before, key_file_before = context.obj
    return Api.at(url or url_before, key_file or key_file_before)


def promote(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="There is no root, and will not be one by itself.")] = False,
    dead: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="With --force: who is gone for good.", show_default=False)
    ] = None,
    yes: Yes = False,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Makes a backup the root: the root hands over to it, without loss.

    With --force it goes on without the brokers that --dead names, which have the majority: what only they have is lost.
    """
    api = Api.at(url, key_file)
    body: dict[str, Any] = {"name": name}
    if force:
        gone = [one.strip() for one in (dead or "").split(",") if one.strip()]
        if not gone:
            raise WrongUse("--force needs --dead: which brokers are gone for good?")
        if name in gone:
            raise WrongUse(f"{cell(name)} cannot be promoted and dead")
        body |= {"force": True, "dead": gone}
        for line in costs(api.get("cluster"), name, gone):
            say(line)
        if not yes:
            _ask_whether_to()
    elif dead is not None:
        raise WrongUse("--dead means something with --force only")
    answer = api.post("cluster", "promote", body=msgspec.json.encode(body), timeout_s=CHANGE_S_MAX)
    say(str(msgspec.json.decode(answer).get("done")))


def costs(cluster: dict[str, Any], name: str, dead: list[str]) -> list[str]:
    """What a forced promotion may cost, as far as the broker that was asked can tell."""
    teller = cell(cluster.get("name"))
    who = cell(dead)
    lines = [f"{cell(name)} is to go on without {who}."]
    members: list[dict[str, Any]] = cluster.get("members") or []
    for own in members:
        if own.get("name") == cluster.get("name"):
            known = own.get("commit_index")
            far = (
                f"up to {cell(known)} it knows it to be committed" if known else "how much is committed it cannot tell"
            )
            lines.append(f"The log of {teller} ends at entry {cell(own.get('log_index'))}; {far}.")
    left = [str(one.get("name")) for one in members if one.get("name") not in dead]
    there = [str(one.get("name")) for one in members if one.get("name") in left and one.get("role") != "absent"]
    if len(there) < elect_need(len(left)):
        lines.append(
            f"Of {cell(left)}, which are to elect a root, only {cell(there)} can be reached: name all that are gone."
        )
    elections = cluster.get("elections") or []
    if elections:
        last = elections[-1]
        lines.append(f"The last root it heard of was {cell(last.get('root'))}, since {_time(last.get('at_ms'))}.")
    return [
        *lines,
        f"What was confirmed to clients and is on {who} alone is lost to the cluster.",
        f"Who comes back later follows {cell(name)}, and what only it has is kept aside in its directory.",
        "If one of them still runs somewhere and serves clients there will be two clusters: make sure that none does.",
    ]


def _time(at_ms: object) -> str:
    if not isinstance(at_ms, int):
        return "an unknown time"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _ask_whether_to() -> None:
    if not sys.stdin.isatty():
        raise WrongUse("nobody is there to be asked whether to do it: add --yes")
    if not typer.confirm("Go on?", err=True):
        raise Refused("nothing was done")
