"""`pandomq permissions`: what users may configure, write and read, by regular expressions on names.

`pandomq permissions topic` narrows writing to an exchange, and binding to it, by the routing key.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pandomq.cli.api import Api, AsJson, KeyFile, Url
from pandomq.cli.objects.listing import Vhost, list_noun
from pandomq.cli.objects.nouns import PERMISSIONS, TOPIC_PERMISSIONS
from pandomq.cli.output import say

permissions_app = typer.Typer(
    name="permissions", help="Manage the permissions of users in a vhost.", no_args_is_help=True
)
topic_app = typer.Typer(
    name="topic", help="Restrict the routing keys that users may write and read.", no_args_is_help=True
)
permissions_app.add_typer(topic_app, name="topic")

User = Annotated[str, typer.Argument(metavar="USER", help="Name of the user.", show_default=False)]
InVhost = Annotated[str, typer.Option("--vhost", "-p", help="Name of the vhost.")]
Exchange = Annotated[str, typer.Argument(metavar="EXCHANGE", help="Name of the exchange.", show_default=False)]
Configure = Annotated[
    str,
    typer.Argument(
        metavar="CONFIGURE",
        help="Regular expression for names that the user may declare and delete. '.*' allows all, '^$' none.",
    ),
]
Write = Annotated[
    str,
    typer.Argument(
        metavar="WRITE",
        help=(
            "Regular expression for the names of exchanges to which the user may publish, and of queues that the user "
            "may bind."
        ),
    ),
]
Read = Annotated[
    str,
    typer.Argument(
        metavar="READ",
        help=(
            "Regular expression for the names of queues from which the user may consume, and of exchanges to which the "
            "user may bind."
        ),
    ),
]
WriteKeys = Annotated[
    str, typer.Argument(metavar="WRITE", help="Regular expression for routing keys with which the user may publish.")
]
ReadKeys = Annotated[
    str, typer.Argument(metavar="READ", help="Regular expression for routing keys with which the user may bind queues.")
]


@permissions_app.command("list")
def list_permissions(vhost: Vhost = None, json: AsJson = False, url: Url = None) -> None:
    """List the permissions of users in vhosts."""
    list_noun(Api.at(url), PERMISSIONS, vhost, None, json)


@permissions_app.command("set")
def set_(
    user: User,
    configure: Configure,
    write: Write,
    read: Read,
    vhost: InVhost = "/",
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Grant a user access to a vhost, and replace its permissions there."""
    set_permissions(Api.at(url, key_file), vhost, user, configure, write, read)


@permissions_app.command("clear")
def clear(user: User, vhost: InVhost = "/", url: Url = None) -> None:
    """Remove all permissions of a user in a vhost."""
    clear_permissions(Api.at(url), vhost, user)


@topic_app.command("list")
def list_topic_permissions(vhost: Vhost = None, json: AsJson = False, url: Url = None) -> None:
    """List the topic permissions of users in vhosts."""
    list_noun(Api.at(url), TOPIC_PERMISSIONS, vhost, None, json)


@topic_app.command("set")
def set_topic(
    user: User, exchange: Exchange, write: WriteKeys, read: ReadKeys, vhost: InVhost = "/", url: Url = None
) -> None:
    """Restrict a user to routing keys at an exchange."""
    set_topic_permissions(Api.at(url), vhost, user, exchange, write, read)


@topic_app.command("clear")
def clear_topic(user: User, vhost: InVhost = "/", url: Url = None) -> None:
    """Remove the routing key restrictions of a user at all exchanges of a vhost."""
    clear_topic_permissions(Api.at(url), vhost, user)


def set_permissions(api: Api, vhost: str, user: str, configure: str, write: str, read: str) -> None:
    api.put("permissions", vhost, user, body={"configure": configure, "write": write, "read": read})
    say(f"user '{user}' in vhost '{vhost}': configure {configure}, write {write}, read {read}")


def clear_permissions(api: Api, vhost: str, user: str) -> None:
    api.delete("permissions", vhost, user)
    say(f"user '{user}' has no permissions in vhost '{vhost}'")


def set_topic_permissions(api: Api, vhost: str, user: str, exchange: str, write: str, read: str) -> None:
    api.put("topic-permissions", vhost, user, body={"exchange": exchange, "write": write, "read": read})
    say(f"user '{user}' at exchange '{exchange}' in vhost '{vhost}': write {write}, read {read}")


def clear_topic_permissions(api: Api, vhost: str, user: str) -> None:
    api.delete("topic-permissions", vhost, user)
    say(f"user '{user}' has no restrictions on routing keys in vhost '{vhost}'")
