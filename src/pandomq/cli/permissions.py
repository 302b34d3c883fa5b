"""`pandomq permissions`: what users may configure, write and read, by regular expressions on names.

`pandomq permissions topic` narrows writing to an exchange, and binding to it, by the routing key.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.listing import Vhost, list_noun
from pandomq.cli.nouns import PERMISSIONS, TOPIC_PERMISSIONS
from pandomq.cli.output import say

permissions_app = typer.Typer(name="permissions", help="What users may do in a vhost.", no_args_is_help=True)
topic_app = typer.Typer(name="topic", help="Which routing keys users may write and read.", no_args_is_help=True)
permissions_app.add_typer(topic_app, name="topic")

User = Annotated[str, typer.Argument(metavar="USER", show_default=False)]
InVhost = Annotated[str, typer.Option("--vhost", "-p", help="The vhost.")]
Exchange = Annotated[str, typer.Argument(metavar="EXCHANGE", show_default=False)]
Configure = Annotated[
    str, typer.Argument(metavar="CONFIGURE", help="What it may declare and delete: '.*' is all, '^$' nothing.")
]
Write = Annotated[str, typer.Argument(metavar="WRITE", help="Where it may publish.")]
Read = Annotated[str, typer.Argument(metavar="READ", help="From where it may consume.")]


@permissions_app.command("list")
def list_permissions(vhost: Vhost = None, json: AsJson = False, url: Url = None) -> None:
    """Lists permissions."""
    list_noun(Api.at(url), PERMISSIONS, vhost, None, json)


@permissions_app.command("set")
def set_(user: User, configure: Configure, write: Write, read: Read, vhost: InVhost = "/", url: Url = None) -> None:
    """Lets a user into a vhost, with these rights in place of those it had."""
    set_permissions(Api.at(url), vhost, user, configure, write, read)


@permissions_app.command("clear")
def clear(user: User, vhost: InVhost = "/", url: Url = None) -> None:
    """Takes all rights in a vhost from a user."""
    clear_permissions(Api.at(url), vhost, user)


@topic_app.command("list")
def list_topic_permissions(vhost: Vhost = None, json: AsJson = False, url: Url = None) -> None:
    """Lists topic permissions."""
    list_noun(Api.at(url), TOPIC_PERMISSIONS, vhost, None, json)


@topic_app.command("set")
def set_topic(user: User, exchange: Exchange, write: Write, read: Read, vhost: InVhost = "/", url: Url = None) -> None:
    """Limits a user to these routing keys at an exchange."""
    set_topic_permissions(Api.at(url), vhost, user, exchange, write, read)


@topic_app.command("clear")
def clear_topic(user: User, vhost: InVhost = "/", url: Url = None) -> None:
    """Takes the limits on routing keys from a user, at all exchanges of the vhost."""
    clear_topic_permissions(Api.at(url), vhost, user)


def set_permissions(api: Api, vhost: str, user: str, configure: str, write: str, read: str) -> None:
    api.put("permissions", vhost, user, body={"configure": configure, "write": write, "read": read})
    say(f"user '{user}' in vhost '{vhost}': configure {configure}, write {write}, read {read}")


def clear_permissions(api: Api, vhost: str, user: str) -> None:
    api.delete("permissions", vhost, user)
    say(f"user '{user}' has no rights in vhost '{vhost}'")


def set_topic_permissions(api: Api, vhost: str, user: str, exchange: str, write: str, read: str) -> None:
    api.put("topic-permissions", vhost, user, body={"exchange": exchange, "write": write, "read": read})
    say(f"user '{user}' at exchange '{exchange}' in vhost '{vhost}': write {write}, read {read}")


def clear_topic_permissions(api: Api, vhost: str, user: str) -> None:
    api.delete("topic-permissions", vhost, user)
    say(f"user '{user}' has no limits on routing keys in vhost '{vhost}'")
