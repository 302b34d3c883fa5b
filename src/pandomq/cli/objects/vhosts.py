"""`pandomq vhosts`: separate namespaces of exchanges and queues in one broker."""

from __future__ import annotations

from typing import Annotated

import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.failures import RequestRejected
from pandomq.cli.objects.listing import list_noun
from pandomq.cli.objects.nouns import VHOSTS
from pandomq.cli.output import say

vhosts_app = typer.Typer(
    name="vhosts", help="Manage vhosts, which separate exchanges and queues.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="VHOST", help="Name of the vhost.", show_default=False)]


@vhosts_app.command("list")
def list_vhosts(json: AsJson = False, url: Url = None) -> None:
    """List the vhosts."""
    list_noun(Api.at(url), VHOSTS, None, None, json)


@vhosts_app.command("add")
def add(
    vhost: Name, description: Annotated[str, typer.Option(help="Description of the vhost.")] = "", url: Url = None
) -> None:
    """Add a vhost."""
    add_vhost(Api.at(url), vhost, description)


@vhosts_app.command("delete")
def delete(vhost: Name, url: Url = None) -> None:
    """Delete a vhost with everything in it, and close the connections to it."""
    delete_vhost(Api.at(url), vhost)


def add_vhost(api: Api, vhost: str, description: str = "") -> None:
    if api.exists("vhosts", vhost):
        raise RequestRejected(f"vhost '{vhost}' exists already")
    api.put("vhosts", vhost, body={"description": description} if description else {})
    say(f"vhost '{vhost}' added")


def delete_vhost(api: Api, vhost: str) -> None:
    api.delete("vhosts", vhost)
    say(f"vhost '{vhost}' deleted")
