"""The user of a request, and the rights of its tags in the HTTP API.

The rights on queues and exchanges are not decided here: the broker checks them, for a client under the user's name.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.admin.limits import ANSWER_S_MAX
from pandomq.admin.refusals import ASK_FOR_LOGIN, Refusal, login_failed, unavailable
from pandomq.ids import UserName
from pandomq.node.clients.attempts import LoginRequester
from pandomq.node.clients.logins import LoginAccepted
from pandomq.wire.inputs import Login

if TYPE_CHECKING:
    from pandomq.admin.access.client_address import ClientAddress
    from pandomq.admin.call import HttpServices

ADMINISTRATOR: Final = "administrator"
MONITORING: Final = "monitoring"
POLICYMAKER: Final = "policymaker"
MANAGEMENT: Final = "management"


class HttpUser(msgspec.Struct, frozen=True):
    name: str
    tags: tuple[str, ...]

    @property
    def administrates(self) -> bool:
        return ADMINISTRATOR in self.tags

    @property
    def monitors(self) -> bool:
        return MONITORING in self.tags or self.administrates

    @property
    def makes_policies(self) -> bool:
        return POLICYMAKER in self.tags or self.administrates

    @property
    def manages(self) -> bool:
        return MANAGEMENT in self.tags or POLICYMAKER in self.tags or self.monitors


BY_KEY: Final = HttpUser("", (ADMINISTRATOR,))
"""The holder of the cluster's key, or of this broker's: it may manage the cluster and change users, and is no user."""


def read_credentials(header: str | None) -> tuple[str, bytes]:
    """User and password of basic authentication. Raises Refusal."""
    if not header:
        raise Refusal(401, "not_authorized", "Login failed", ASK_FOR_LOGIN)
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        raise login_failed()
    try:
        user, colon, password = b64decode(encoded.strip(), validate=True).partition(b":")
        name = user.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise Refusal(400, "bad_request", "the authorization header is malformed") from None
    if not colon:
        raise login_failed()
    return name, password


async def authenticate(
    services: HttpServices, user: str, password: bytes, client: ClientAddress, has_disconnected: Callable[[], bool]
) -> HttpUser:
    """Raises Refusal (401), and later the more logins have failed."""
    node = services.node
    if not node.following or not node.logins.have_users:
        raise unavailable("this broker has not received the users yet: try again in a moment")
    answer: asyncio.Future[LoginAccepted | None] = asyncio.get_running_loop().create_future()

    def on_answer(welcome: LoginAccepted | None) -> None:
        if not answer.done():
            answer.set_result(welcome)

    caller = LoginRequester(on_answer, has_disconnected, relayed=client.relayed)
    login = Login("PLAIN", UserName(user), password, {})
    node.log_in(caller, login, client.peer, services.clock.now_ms())
    if not answer.done():
        services.wake()
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            welcome = await answer
    except TimeoutError:
        raise unavailable("too many logins are in progress: try again in a moment") from None
    finally:
        caller.give_up()
    if welcome is None:
        raise login_failed()
    return HttpUser(welcome.user, node.logins.tags(welcome.user))
