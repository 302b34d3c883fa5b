"""`pandomq users`: who may log in, and their tags."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from pandomq.cli.api import Api, AsJson, Url
from pandomq.cli.failures import Refused
from pandomq.cli.listing import list_noun
from pandomq.cli.nouns import USERS
from pandomq.cli.output import say
from pandomq.cli.passwords import PasswordFile, read_password

users_app = typer.Typer(name="users", help="Who may log in, and their tags.", no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", show_default=False)]
TAGS_HELP: Final = "administrator, monitoring, policymaker, management; none: AMQP only."


@users_app.command("list")
def list_users(json: AsJson = False, url: Url = None) -> None:
    """Lists the users."""
    list_noun(Api.at(url), USERS, None, None, json)


@users_app.command("add")
def add(
    user: User,
    tags: Annotated[str, typer.Option(metavar="A,B,…", help=TAGS_HELP)] = "",
    password_file: PasswordFile = None,
    url: Url = None,
) -> None:
    """Adds a user, who may do nothing until `pandomq permissions set`."""
    api = Api.at(url)
    add_user(api, user, read_password(password_file, user), tags.split(","))


@users_app.command("delete")
def delete(user: User, url: Url = None) -> None:
    """Deletes a user and its permissions."""
    delete_user(Api.at(url), user)


@users_app.command("password")
def password(user: User, password_file: PasswordFile = None, url: Url = None) -> None:
    """Gives a user another password."""
    api = Api.at(url)
    change_password(api, user, read_password(password_file, user))


@users_app.command("tags")
def tags(
    user: User,
    tags: Annotated[list[str] | None, typer.Argument(metavar="[TAG]…", help=TAGS_HELP, show_default=False)] = None,
    url: Url = None,
) -> None:
    """Gives a user these tags in place of those it has."""
    set_tags(Api.at(url), user, tags or [])


def add_user(api: Api, user: str, password: str, tags: list[str]) -> None:
    if api.exists("users", user):
        raise Refused(f"user '{user}' exists already")
    api.put("users", user, body={"password": password, "tags": _joined(tags)})
    say(f"user '{user}' added")


def delete_user(api: Api, user: str) -> None:
    api.delete("users", user)
    say(f"user '{user}' deleted")


def change_password(api: Api, user: str, password: str) -> None:
    known: dict[str, Any] = api.get("users", user)
    api.put("users", user, body={"password": password, "tags": _joined(_tags_of(known))})
    say(f"user '{user}' has another password")


def set_tags(api: Api, user: str, tags: list[str]) -> None:
    """A user is written whole, so the hash of its password goes back as it came."""
    known: dict[str, Any] = api.get("users", user)
    kept: dict[str, Any] = {name: known[name] for name in ("password_hash", "hashing_algorithm") if name in known}
    api.put("users", user, body={**kept, "tags": _joined(tags)})
    say(f"user '{user}' has the tags {_joined(tags)}" if any(tags) else f"user '{user}' has no tags")


def _tags_of(known: dict[str, Any]) -> list[str]:
    """A list, or a text with commas from older brokers."""
    tags = known.get("tags") or []
    return tags.split(",") if isinstance(tags, str) else list(tags)


def _joined(tags: list[str]) -> str:
    return ",".join(tag.strip() for tag in tags if tag.strip())
