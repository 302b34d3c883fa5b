"""`pandomq vhosts`: separate worlds of exchanges and queues in one broker."""

from __future__ import annotations

from typing import Annotated

import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.failures import Refused
from pandomq.cli.listing import list_noun
from pandomq.cli.nouns import VHOSTS
from pandomq.cli.output import say

vhosts_app = typer.Typer(name="vhosts", help="Separate worlds of exchanges and queues.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="VHOST", show_default=False)]


@vhosts_app.command("list")
def list_vhosts(json: AsJson = False, url: Url = None) -> None:
    """Lists the vhosts."""
    list_noun(Api.at(url), VHOSTS, None, None, json)


@vhosts_app.command("add")
def add(vhost: Name, description: Annotated[str, typer.Option(help="What it is for.")] = "", url: Url = None) -> None:
    """Adds a vhost."""
    add_vhost(Api.at(url), vhost, description)


@vhosts_app.command("delete")
def delete(vhost: Name, url: Url = None) -> None:
    """Deletes a vhost with all that is in it; connections to it are closed."""
    delete_vhost(Api.at(url), vhost)


def add_vhost(api: Api, vhost: str, description: str = "") -> None:
    if api.exists("vhosts", vhost):
        raise Refused(f"vhost '{vhost}' exists already")
    api.put("vhosts", vhost, body={"description": description} if description else {})
    say(f"vhost '{vhost}' added")


def delete_vhost(api: Api, vhost: str) -> None:
    api.delete("vhosts", vhost)
    say(f"vhost '{vhost}' deleted")
