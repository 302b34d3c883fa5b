"""`pandomq policies`: settings for queues and exchanges by the pattern of their names.

With `--operator` those of the operator, which limit the others.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.failures import WrongUse
from pandomq.cli.objects.listing import Vhost, list_noun
from pandomq.cli.objects.nouns import OPERATOR_POLICIES, POLICIES
from pandomq.cli.output import say

policies_app = typer.Typer(
    name="policies", help="Manage policies, which apply settings to queues and exchanges by name.", no_args_is_help=True
)

SetsOperator = Annotated[
    bool,
    typer.Option(
        "--operator",
        help=(
            "Set an operator policy, which takes precedence over ordinary policies. Of limits in both, the stricter "
            "one applies."
        ),
    ),
]
ListsOperator = Annotated[bool, typer.Option("--operator", help="List operator policies instead of ordinary ones.")]
ClearsOperator = Annotated[bool, typer.Option("--operator", help="Remove an operator policy, not an ordinary one.")]
InVhost = Annotated[str, typer.Option("--vhost", "-p", help="Name of the vhost.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the policy.", show_default=False)]
APPLY_TO: Final = "all"


@policies_app.command("list")
def list_policies(operator: ListsOperator = False, vhost: Vhost = None, json: AsJson = False, url: Url = None) -> None:
    """List the policies of vhosts."""
    list_noun(Api.at(url), OPERATOR_POLICIES if operator else POLICIES, vhost, None, json)


@policies_app.command("set")
def set_(
    name: Name,
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="PATTERN", help="Regular expression that matches the names of queues or exchanges, as '^tmp\\.'."
        ),
    ],
    definition: Annotated[
        str,
        typer.Argument(
            metavar="DEFINITION", help="Settings of the policy as JSON, for example '{\"max-length\": 1000}'."
        ),
    ],
    priority: Annotated[
        int,
        typer.Option(
            help="Priority of the policy. If several policies match, the one with the highest priority applies."
        ),
    ] = 0,
    apply_to: Annotated[
        str | None,
        typer.Option(
            help="Kind of objects: queues, classic_queues, quorum_queues, streams, exchanges or all.",
            show_default="all; queues for operator policies",
        ),
    ] = None,
    operator: SetsOperator = False,
    vhost: InVhost = "/",
    url: Url = None,
) -> None:
    """Create or replace a policy, which applies at once."""
    set_policy(Api.at(url), operator, vhost, name, pattern, parse_definition(definition), priority, apply_to)


@policies_app.command("clear")
def clear(name: Name, operator: ClearsOperator = False, vhost: InVhost = "/", url: Url = None) -> None:
    """Remove a policy."""
    clear_policy(Api.at(url), operator, vhost, name)


def parse_definition(text: str) -> dict[str, Any]:
    try:
        definition = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise WrongUse(f"the definition is not JSON: {error}") from None
    if not isinstance(definition, dict):
        raise WrongUse('the definition is not a JSON object: expected {"max-length": 1000}')
    return definition


def set_policy(
    api: Api,
    operator: bool,
    vhost: str,
    name: str,
    pattern: str,
    definition: dict[str, Any],
    priority: int,
    apply_to: str | None,
) -> None:
    # An operator's policy applies to queues only, as in RabbitMQ.
    target = apply_to or ("queues" if operator else APPLY_TO)
    body = {"pattern": pattern, "definition": definition, "priority": priority, "apply-to": target}
    api.put(_path(operator), vhost, name, body=body)
    say(f"policy '{name}' in vhost '{vhost}' is set")


def clear_policy(api: Api, operator: bool, vhost: str, name: str) -> None:
    api.delete(_path(operator), vhost, name)
    say(f"policy '{name}' in vhost '{vhost}' is cleared")


def _path(operator: bool) -> str:
    return (OPERATOR_POLICIES if operator else POLICIES).path
