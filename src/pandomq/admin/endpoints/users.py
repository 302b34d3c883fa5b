"""Users: list, show, make, change, delete.

A received password is hashed here, outside the loop, and is not passed on; a listing shows the hash.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from pandomq.admin.access.last_administrator import administrates, check_left
from pandomq.admin.names import read_tags
from pandomq.admin.refusals import bad_request, not_found
from pandomq.admin.responses import Encoded, Json, Nothing, created, deleted
from pandomq.broker.administration.passwords import RABBITMQ_SHA256, SALT_BYTES, SCRYPT, hash_password
from pandomq.broker.log.commands import DeleteUser, PutUser
from pandomq.limits import PASSWORD_BYTES_MAX

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.broker.administration.administration_views import UserView

# One thread: however many passwords are set at once, they use one core at most.
_HASHER: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="password")


async def list_all(call: HttpCall) -> Encoded:
    return await call.show_list(_sorted(call), user_row)


async def list_without_permissions(call: HttpCall) -> Encoded:
    having = {view.user for view in call.views.permissions()}
    return await call.show_list([view for view in _sorted(call) if view.name not in having], user_row)


async def show(call: HttpCall) -> Json:
    view = call.views.user(call.path["user"])
    if view is None:
        raise not_found()
    return call.show(user_row(view))


async def put(call: HttpCall) -> Nothing:
    name = call.path["user"]
    if not call.has("tags"):
        raise bad_request("tags_not_present")
    tags = read_tags(call.value("tags"))
    password_hash, hashing = await _hash(call)
    if not administrates(tags, password_hash):
        check_left(call, [name])
    new = call.views.user(name) is None
    await call.administer(PutUser(name, password_hash, hashing, tags))
    return created(new=new)


async def delete(call: HttpCall) -> Nothing:
    check_left(call, [call.path["user"]])
    await call.administer(DeleteUser(call.path["user"]))
    return deleted()


async def delete_many(call: HttpCall) -> Nothing:
    (names,) = call.required("users")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise bad_request("users is not a list of names")
    for name in names:
        if call.views.user(name) is None:
            raise bad_request(["no_such_user", name])
    check_left(call, names)
    for name in dict.fromkeys(names):
        await call.administer(DeleteUser(name))
    return deleted()


def user_row(view: UserView) -> dict[str, Any]:
    return {
        "name": view.name,
        "password_hash": view.password_hash,
        "hashing_algorithm": view.hashing,
        "tags": list(view.tags),
        "limits": dict(view.limits),
    }


def _sorted(call: HttpCall) -> list[UserView]:
    return sorted(call.views.users(), key=lambda view: view.name)


async def _hash(call: HttpCall) -> tuple[str, str]:
    """With neither a password nor a hash, no password matches: the user can only log in by other means."""
    if call.has("password"):
        password = call.text("password").encode()
        if len(password) > PASSWORD_BYTES_MAX:
            raise bad_request(f"the password is longer than {PASSWORD_BYTES_MAX} bytes")
        if password:
            salt = os.urandom(SALT_BYTES)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(_HASHER, hash_password, password, salt), SCRYPT
    return call.text("password_hash", ""), call.text("hashing_algorithm", RABBITMQ_SHA256)
