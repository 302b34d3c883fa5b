"""Writes the tables of rights in docs/security.md, from the tables that the broker itself uses.

With --check nothing is written, and the exit code says whether the page is up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from pandomq.admin.access.tags import EndpointAccess
from pandomq.admin.routes import _ROUTES as ROUTES
from pandomq.broker.administration.rights import AMQP, ANY_RIGHT, DATA, ROUTING_KEY, SOME_EXCHANGE, Operation
from tools.generated_page import replace_between, write_or_check

PAGE = Path(__file__).parent.parent / "docs" / "security.md"
SOURCES = "src/pandomq/broker/administration/rights.py and admin/routes.py"
BEGIN = f"<!-- rights: from {SOURCES} by tools/rights_page.py -->\n"
END = "<!-- end of rights -->\n"

_NEEDED = {
    EndpointAccess.OPEN: "no login",
    EndpointAccess.MANAGEMENT: "any tag",
    EndpointAccess.CLUSTER_VIEW: "any tag, or the cluster's key",
    EndpointAccess.VHOST: "any tag, and access to the vhost",
    EndpointAccess.POLICIES: "`policymaker` or `administrator`, and access to the vhost",
    EndpointAccess.MONITORING: "`monitoring` or `administrator`",
    EndpointAccess.ADMINISTRATOR: "`administrator`",
    EndpointAccess.CLUSTER: "`administrator`, or the cluster's key",
    EndpointAccess.USERS: "`administrator`, or the cluster's key or the key in the broker's directory",
}


def _needs(operation: Operation) -> str:
    needs = []
    for what, rights in operation.needs.items():
        right = "any right" if rights == ANY_RIGHT else " or ".join(one.name.lower() for one in rights)
        which = {ROUTING_KEY: f"the {ROUTING_KEY} (topic permissions)", SOME_EXCHANGE: SOME_EXCHANGE}
        needs.append(f"{right} on {which.get(what, f'the {what}')}")
    return "; ".join(needs) or "none"


def _operations(operations: Iterable[Operation]) -> list[str]:
    """Joins neighbours with equal rights and no further remark into one row."""
    rows: list[tuple[list[str], str, str]] = []
    for operation in operations:
        method, _, rest = operation.name.partition(",")
        name, needs = f"`{method}`{',' if rest else ''}{rest}", _needs(operation)
        if rows and rows[-1][1:] == (needs, operation.note):
            rows[-1][0].append(name)
        else:
            rows.append(([name], needs, operation.note))
    return [f"| {', '.join(names)} | {needs} | {note} |".replace("|  |", "| |") for names, needs, note in rows]


def _endpoints() -> list[str]:
    rows = []
    for path, actions in ROUTES.items():
        for access in EndpointAccess:
            methods = [method for method, (needed, _) in actions.items() if needed is access]
            if methods:
                rows.append(f"| `/{path}` | {', '.join(methods)} | {_NEEDED[access]} |")
    return rows


def tables() -> str:
    lines = ["**AMQP**", "", "| method | rights | |", "| --- | --- | --- |", *_operations(AMQP), ""]
    lines += ["**Data port**", "", "| request | rights | |", "| --- | --- | --- |", *_operations(DATA.values()), ""]
    lines += ["**HTTP**", "", "| path | method | needs |", "| --- | --- | --- |", *_endpoints()]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Returns the page with the current tables of the broker."""
    return replace_between(text, BEGIN, END, tables())


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page))
