"""`pandomq policies`: settings for queues and exchanges by the pattern of their names.

With `--operator` those of the operator, which bound what others set.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.failures import WrongUse
from pandomq.cli.listing import Vhost, list_noun
from pandomq.cli.nouns import OPERATOR_POLICIES, POLICIES
from pandomq.cli.output import say

policies_app = typer.Typer(name="policies", help="Settings for queues and exchanges by name.", no_args_is_help=True)

Operator = Annotated[bool, typer.Option("--operator", help="The operator's policies.")]
InVhost = Annotated[str, typer.Option("--vhost", "-p", help="The vhost.")]
Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
APPLY_TO: Final = "all"


@policies_app.command("list")
def list_policies(operator: Operator = False, vhost: Vhost = None, json: AsJson = False, url: Url = None) -> None:
    """Lists policies."""
    list_noun(Api.at(url), OPERATOR_POLICIES if operator else POLICIES, vhost, None, json)


@policies_app.command("set")
def set_(
    name: Name,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A regular expression on names: '^tmp\\.'.")],
    definition: Annotated[str, typer.Argument(metavar="DEFINITION", help="""JSON: '{"max-length": 1000}'.""")],
    priority: Annotated[int, typer.Option(help="Of those that match, the highest holds.")] = 0,
    apply_to: Annotated[
        str | None, typer.Option(help="queues, exchanges, all, …", show_default="all; queues for operators'")
    ] = None,
    operator: Operator = False,
    vhost: InVhost = "/",
    url: Url = None,
) -> None:
    """Sets a policy, which holds at once."""
    set_policy(Api.at(url), operator, vhost, name, pattern, parse_definition(definition), priority, apply_to)


@policies_app.command("clear")
def clear(name: Name, operator: Operator = False, vhost: InVhost = "/", url: Url = None) -> None:
    """Removes a policy."""
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
    # An operator's policy concerns queues only, in RabbitMQ and here.
    target = apply_to or ("queues" if operator else APPLY_TO)
    body = {"pattern": pattern, "definition": definition, "priority": priority, "apply-to": target}
    api.put(_path(operator), vhost, name, body=body)
    say(f"policy '{name}' in vhost '{vhost}' is set")


def clear_policy(api: Api, operator: bool, vhost: str, name: str) -> None:
    api.delete(_path(operator), vhost, name)
    say(f"policy '{name}' in vhost '{vhost}' is cleared")


def _path(operator: bool) -> str:
    return (OPERATOR_POLICIES if operator else POLICIES).path
