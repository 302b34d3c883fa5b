"""`pandomq users`: the users that may log in, and their tags."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from pandomq.cli.api import Api, AsJson, KeyFile, Url
from pandomq.cli.failures import RequestRejected
from pandomq.cli.objects.listing import list_noun
from pandomq.cli.objects.nouns import USERS
from pandomq.cli.objects.passwords import PasswordFile, read_password
from pandomq.cli.output import say

users_app = typer.Typer(name="users", help="Manage users and their tags.", no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", help="Name of the user.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Allow the change even if no administrator is left.")]
TAGS_HELP: Final = (
    "Tags: administrator, monitoring, policymaker, management or impersonator. Without tags, the user can use AMQP "
    "only."
)


@users_app.command("list")
def list_users(json: AsJson = False, url: Url = None, key_file: KeyFile = None) -> None:
    """List the users."""
    list_noun(Api.at(url, key_file), USERS, None, None, json)


@users_app.command("add")
def add(
    user: User,
    tags: Annotated[str, typer.Option(metavar="A,B,…", help=TAGS_HELP)] = "",
    password_file: PasswordFile = None,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Add a user without permissions. `pandomq permissions set` grants them."""
    api = Api.at(url, key_file)
    add_user(api, user, read_password(password_file, user), tags.split(","))


@users_app.command("delete")
def delete(user: User, force: Force = False, url: Url = None, key_file: KeyFile = None) -> None:
    """Delete a user and its permissions. The last administrator can be deleted only with --force."""
    delete_user(Api.at(url, key_file), user, force=force)


@users_app.command("password")
def password(user: User, password_file: PasswordFile = None, url: Url = None, key_file: KeyFile = None) -> None:
    """Change the password of a user."""
    api = Api.at(url, key_file)
    change_password(api, user, read_password(password_file, user))


@users_app.command("tags")
def tags(
    user: User,
    tags: Annotated[list[str] | None, typer.Argument(metavar="[TAG]…", help=TAGS_HELP, show_default=False)] = None,
    force: Force = False,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Replace the tags of a user."""
    set_tags(Api.at(url, key_file), user, tags or [], force=force)


def add_user(api: Api, user: str, password: str, tags: list[str]) -> None:
    if api.exists("users", user):
        raise RequestRejected(
            f"user '{user}' exists already: change it with `pandomq users password` or `pandomq users tags`"
        )
    api.put("users", user, body={"password": password, "tags": _joined(tags)})
    say(f"user '{user}' added")


def delete_user(api: Api, user: str, *, force: bool = False) -> None:
    api.delete("users", user, query=_forced(force))
    say(f"user '{user}' deleted")


def change_password(api: Api, user: str, password: str) -> None:
    known: dict[str, Any] = api.get("users", user)
    api.put("users", user, body={"password": password, "tags": _joined(_tags_of(known))})
    say(f"password of user '{user}' changed")


def set_tags(api: Api, user: str, tags: list[str], *, force: bool = False) -> None:
    """The API replaces the whole user, so the hash of its password is sent back unchanged."""
    known: dict[str, Any] = api.get("users", user)
    kept: dict[str, Any] = {name: known[name] for name in ("password_hash", "hashing_algorithm") if name in known}
    api.put("users", user, body={**kept, "tags": _joined(tags)}, query=_forced(force))
    say(f"user '{user}' has the tags {_joined(tags)}" if any(tags) else f"user '{user}' has no tags")


def _forced(force: bool) -> dict[str, str] | None:
    return {"force": "true"} if force else None


def _tags_of(known: dict[str, Any]) -> list[str]:
    """A list, or a text with commas from older brokers."""
    tags = known.get("tags") or []
    return tags.split(",") if isinstance(tags, str) else list(tags)


def _joined(tags: list[str]) -> str:
    return ",".join(tag.strip() for tag in tags if tag.strip())
