"""`pandomq status`: who is in the cluster, who leads it, and what is wrong."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.output import cell, print_json, print_table

MEMBER_COLUMNS = ("name", "role", "address", "in_sync", "log_index", "commit_index", "lag_bytes")


def status(json: AsJson = False, url: Url = None) -> None:
    """Shows the brokers, their roles, and alarms."""
    show_status(Api.at(url), json)


def show_status(api: Api, json: bool) -> None:
    answer = api.fetch("cluster")
    if json:
        print_json(answer)
        return
    found: dict[str, Any] = msgspec.json.decode(answer)
    for line in status_lines(found, api.address):
        sys.stdout.write(line + "\n")
    members: list[dict[str, Any]] = found.get("members") or []
    print_table(MEMBER_COLUMNS, [[member.get(column) for column in MEMBER_COLUMNS] for member in members])


def status_lines(found: dict[str, Any], address: str) -> list[str]:
    root = found.get("root")
    lines = [
        f"PandoMQ {cell(found.get('version'))} at {address}, kernel: {cell(found.get('kernel'))}",
        f"cluster {cell(found.get('cluster'))}, term {cell(found.get('term'))}, "
        + (f"root {cell(root)}" if root else "no root: nothing is confirmed until there is one"),
    ]
    alarms: list[Any] = found.get("alarms") or []
    return [*lines, *(f"ALARM {cell(alarm)}" for alarm in alarms)]
