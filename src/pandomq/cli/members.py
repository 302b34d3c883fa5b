"""`pandomq members`: lists and changes the members of the cluster; `pandomq promote`: makes a broker root."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from pandomq.cli.api import Api, AsJson, KeyFile, Url
from pandomq.cli.config.cluster import parse_primary
from pandomq.cli.failures import RequestRejected, WrongUse
from pandomq.cli.output import cell, print_json, print_table, say
from pandomq.cli.status import member_rows
from pandomq.replica.members.quorum import elect_need

members_app = typer.Typer(
    name="members", help="List the brokers of the cluster, and change which of them vote.", invoke_without_command=True
)

COLUMNS: Final = ("name", "role", "address", "in_sync", "lag_bytes", "connections")
"""`pandomq status` shows how far their logs are."""

CHANGE_S_MAX: Final = 90.0
"""A new member may take a minute to catch up; the broker reports if it has not."""

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


@members_app.callback()
def members(context: typer.Context, json: AsJson = False, url: Url = None, key_file: KeyFile = None) -> None:
    """List the brokers of the cluster. The subcommands `add` and `remove` change which of them vote."""
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
    member: Annotated[
        str,
        typer.Argument(
            metavar="NAME=HOST:PORT",
            help="Name of the broker, and the address on which other brokers connect to it, as n4=10.0.0.4:5672.",
            show_default=False,
        ),
    ],
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Make a running broker a primary, so that it votes. The broker must run with the cluster's key, and catches up
    with the log first. To make a secondary a primary, first restart it with itself among cluster.primaries.
    """
    try:
        primary = parse_primary(member)
    except ValueError as error:
        raise WrongUse(str(error)) from None
    api = _api(context, url, key_file)
    api.put("cluster", "members", primary.name, body={"address": primary.address}, timeout_s=CHANGE_S_MAX)
    say(f"{primary.name} is now a primary")


@members_app.command("remove")
def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the primary to remove.", show_default=False)],
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Remove a primary from the cluster, whether it is running or not. If it is running, stop it afterwards, and remove
    it from cluster.primaries in all files.
    """
    remove_member(_api(context, url, key_file), name)


def remove_member(api: Api, name: str) -> None:
    api.delete("cluster", "members", name, timeout_s=CHANGE_S_MAX)
    say(f"{name} is no longer a primary")


def _api(context: typer.Context, url: str | None, key_file: Path | None) -> Api:
    """Options may come before or after the subcommand."""
    url_before, key_file_before = context.obj
    return Api.at(url or url_before, key_file or key_file_before)


def promote(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the broker to promote.", show_default=False)],
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Promote the broker although no root can be elected. Messages may be lost. Needs --dead."
        ),
    ] = False,
    dead: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Names of all brokers that are lost permanently, separated by commas. Needs --force.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Make a backup the root: the current root hands over to it without loss.

    With --force, the backup continues without the brokers that --dead names, even if they are the majority. Entries
    that only those brokers have are lost. The promotion is refused if a broker that --dead names answers, or if a
    remaining primary is in contact with a root, does not answer, or has a newer log.
    """
    api = Api.at(url, key_file)
    body: dict[str, Any] = {"name": name}
    if force:
        gone = [one.strip() for one in (dead or "").split(",") if one.strip()]
        if not gone:
            raise WrongUse("--force needs --dead NAME,…: name the brokers that are lost for good")
        if name in gone:
            raise WrongUse(f"{cell(name)} cannot be both promoted and dead: leave it out of --dead")
        body |= {"force": True, "dead": gone}
        for line in costs(api.get("cluster"), name, gone):
            say(line)
        if not yes:
            _ask_whether_to()
    elif dead is not None:
        raise WrongUse(f"--dead {cell(dead)} works only together with --force")
    answer = api.post("cluster", "promote", body=msgspec.json.encode(body), timeout_s=CHANGE_S_MAX)
    say(str(msgspec.json.decode(answer).get("done")))


def costs(cluster: dict[str, Any], name: str, dead: list[str]) -> list[str]:
    """The possible losses of a forced promotion, as far as the asked broker knows."""
    teller = cell(cluster.get("name"))
    who = cell(dead)
    lines = [f"{cell(name)} will continue without {who}."]
    members: list[dict[str, Any]] = cluster.get("members") or []
    for own in members:
        if own.get("name") == cluster.get("name"):
            known = own.get("commit_index")
            far = (
                f"the entries up to {cell(known)} are known to be committed"
                if known
                else "how many of them are committed is not known"
            )
            lines.append(f"The log of {teller} ends at entry {cell(own.get('log_index'))}; {far}.")
    left = [str(one.get("name")) for one in members if one.get("name") not in dead]
    there = [str(one.get("name")) for one in members if one.get("name") in left and one.get("role") != "absent"]
    if len(there) < elect_need(len(left)):
        lines.append(
            f"Of {cell(left)}, which would elect a root, only {cell(there)} can be reached: name all brokers that "
            "are lost."
        )
    elections = cluster.get("elections") or []
    if elections:
        last = elections[-1]
        lines.append(f"The last root known to {teller} was {cell(last.get('root'))}, since {_time(last.get('at_ms'))}.")
    return [
        *lines,
        f"Messages that were confirmed to clients and are on {who} alone are lost.",
        (
            f"A broker that returns later follows {cell(name)}; entries that only it has are kept in a side file in "
            "its directory."
        ),
        (
            "If one of them is still running and serves clients, there will be two clusters: make sure that none of "
            "them runs."
        ),
    ]


def _time(at_ms: object) -> str:
    if not isinstance(at_ms, int):
        return "an unknown time"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _ask_whether_to() -> None:
    if not sys.stdin.isatty():
        raise WrongUse("there is no terminal to ask for confirmation: add --yes")
    if not typer.confirm("Continue?", err=True):
        raise RequestRejected("nothing was changed")
