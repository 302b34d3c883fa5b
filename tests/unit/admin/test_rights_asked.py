"""Each endpoint asked with each tag, at the root and at a backup: the tags in the table decide, and nothing else."""

from __future__ import annotations

import re
from base64 import b64encode

import httpx
import pytest

from pandomq.admin.access.tags import EndpointAccess
from pandomq.broker.log.commands import PutPermissions, PutUser
from tests.unit.admin.cluster_api import Brokers, on_brokers, until
from tests.unit.admin.test_rights import ALLOWED, CELLS

NAMES = {"vhost": "%2F", "port": "1", "protocol": "none"}
"""All else in a path is called `none`, which there is not: what is allowed finds nothing to change."""
BODY = b'{"users": []}'
TAGS = ((), ("management",), ("policymaker",), ("monitoring",), ("administrator",))
PLACES = ("at the root", "through a backup")


BY_AMQP = "api/aliveness-test/{vhost}"
"""It declares a queue, though it is asked by GET."""


def target(path: str, user: str) -> str:
    # A user's connections are the user's own business, whatever its tags.
    path = path.replace("connections/username/{user}", f"connections/username/{user}")  # noqa: RUF027 - a template
    return "/" + re.sub(r"\{(\w+)\}", lambda found: NAMES.get(found[1], "none"), path)


def user_with(tags: tuple[str, ...]) -> str:
    return "-".join(("u", *tags))


async def prepare(made: Brokers, tags: tuple[str, ...]) -> None:
    """A user with these tags, and with access to the vhost but no right to anything in it."""
    root, user = made.world.node(made.root), user_with(tags)
    guest = root.broker.state.users["guest"]
    root.administer(PutUser(user, guest.password_hash, guest.hashing, tags), lambda _: None)
    root.administer(PutPermissions("/", user, "^$", "^$", "^$"), lambda _: None)
    brokers = [made.world.node(name).broker for name in made.world.machines]
    await until(lambda: all(user in broker.state.vhosts["/"].access for broker in brokers))


async def status(client: httpx.AsyncClient, tags: tuple[str, ...], method: str, path: str) -> int:
    login = b64encode(f"{user_with(tags)}:guest".encode()).decode()
    headers = {"authorization": f"Basic {login}", "content-type": "application/json"}
    content = None if method == "GET" else BODY
    answer = await client.request(method, target(path, user_with(tags)), headers=headers, content=content)
    return answer.status_code


@pytest.mark.timeout(120)
@pytest.mark.proves("R38")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("tags", TAGS, ids=user_with)
def test_each_endpoint_is_answered_to_the_tags_in_the_table_and_to_no_others(tags: tuple[str, ...], place: str) -> None:
    wrong: list[str] = []

    async def test(made: Brokers) -> None:
        await prepare(made, tags)
        name = made.root if place == PLACES[0] else made.backups[0]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{made.ports[name]}", timeout=30) as client:
            for path, method, needed in CELLS:
                if needed is EndpointAccess.OPEN:
                    continue
                found = await status(client, tags, method, path)
                is_allowed = bool(set(tags) & set(ALLOWED[needed]))
                # Without the right over AMQP the request of an allowed user is refused like that of another one.
                refused_later = is_allowed and needed is EndpointAccess.VHOST and (method != "GET" or path == BY_AMQP)
                if (found == 401) is is_allowed and not refused_later:
                    wrong.append(f"{method} {path}: {found}")

    on_brokers(test)
    assert wrong == []
