"""`pandomq status`: the members of the cluster, its root, and problems."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from pandomq.cli.api import Api, AsJson, KeyFile, Url
from pandomq.cli.output import Row, cell, print_json, print_table

MEMBER_COLUMNS: Final = ("name", "role", "address", "in_sync", "log_index", "commit_index", "lag_bytes")
ELECTIONS_SHOWN: Final = 5


def status(json: AsJson = False, url: Url = None, key_file: KeyFile = None) -> None:
    """Show the brokers, their roles, links, the last elections, and alarms."""
    show_status(Api.at(url, key_file), json)


def show_status(api: Api, json: bool) -> None:
    answer = api.fetch("cluster")
    if json:
        print_json(answer)
        return
    found: dict[str, Any] = msgspec.json.decode(answer)
    for line in status_lines(found, api.address):
        sys.stdout.write(line + "\n")
    print_table(MEMBER_COLUMNS, member_rows(found.get("members") or []))
    for line in [*link_lines(found), *election_lines(found)]:
        sys.stdout.write(line + "\n")


def member_rows(members: Sequence[dict[str, Any]], columns: Sequence[str] = MEMBER_COLUMNS) -> list[Row]:
    return [[member.get(column) for column in columns] for member in members]


def status_lines(found: dict[str, Any], address: str) -> list[str]:
    root = found.get("root")
    lines = [
        f"PandoMQ {cell(found.get('version'))} at {address}, kernel: {cell(found.get('kernel'))}",
        f"cluster {cell(found.get('cluster'))}, term {cell(found.get('term'))}, "
        + (f"root {cell(root)}" if root else "no root: no message can be confirmed until one is elected"),
    ]
    if found.get("epoch"):
        lines.append(f"epoch {cell(found.get('epoch'))}: the last promotion was forced")
    if root and root != found.get("name", root):
        lines.append(
            f"{cell(found.get('name'))} is a {cell(found.get('role'))}: only the root knows the progress of the "
            "other brokers"
        )
    alarms: list[Any] = found.get("alarms") or []
    texts: list[Any] = found.get("alarm_texts") or []
    return [*lines, *(f"ALARM {cell(alarm)}" for alarm in alarms), *(f"      {cell(text)}" for text in texts)]


def link_lines(found: dict[str, Any]) -> list[str]:
    """For links with a problem."""
    broken = [link for link in found.get("links") or [] if not link.get("linked") or link.get("state") != "linked"]
    return [
        (
            f"LINK to {cell(link.get('name') or 'an unknown broker')} at {cell(link.get('address'))}: "
            f"{cell(link.get('state'))}"
        )
        for link in broken
    ]


def election_lines(found: dict[str, Any]) -> list[str]:
    """For a cluster with more than one broker."""
    elections = found.get("elections") or []
    if len(found.get("members") or []) < 2 or not elections:
        return []
    lines = ["", "last elections:"]
    for election in elections[-ELECTIONS_SHOWN:]:
        at = datetime.fromtimestamp(election["at_ms"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        missing_ms = election.get("missing_ms") or 0
        after = f", after {missing_ms / 1000:.2f} s without a root" if missing_ms else ""
        lines.append(f"  {at}  term {cell(election.get('term'))}  {cell(election.get('root'))}{after}")
    return lines
