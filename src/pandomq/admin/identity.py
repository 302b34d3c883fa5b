"""Who asks, and what its tags allow on the HTTP side.

What it may do to queues and exchanges is not decided here: that is asked of the broker, by a client under its name.
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
from pandomq.node.attempts import Caller
from pandomq.node.logins import Welcome
from pandomq.wire.inputs import Login

if TYPE_CHECKING:
    from pandomq.admin.call import Services

ADMINISTRATOR: Final = "administrator"
MONITORING: Final = "monitoring"
POLICYMAKER: Final = "policymaker"
MANAGEMENT: Final = "management"


class Identity(msgspec.Struct, frozen=True):
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


BY_KEY: Final = Identity("", (ADMINISTRATOR,))
"""Who has the cluster's key may steer the cluster, and is no user."""


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
        raise Refusal(400, "bad_request", "the authorization header cannot be read") from None
    if not colon:
        raise login_failed()
    return name, password


async def authenticate(
    services: Services, user: str, password: bytes, peer: tuple[str, int], hung_up: Callable[[], bool]
) -> Identity:
    """Raises Refusal (401), as late as an address deserves that fails again and again."""
    node = services.node
    if not node.following or not node.logins.have_users:
        raise unavailable("this broker does not know its users yet: ask again in a moment")
    answer: asyncio.Future[Welcome | None] = asyncio.get_running_loop().create_future()

    def on_answer(welcome: Welcome | None) -> None:
        if not answer.done():
            answer.set_result(welcome)

    caller = Caller(on_answer, hung_up)
    login = Login("PLAIN", UserName(user), password, {})
    node.log_in(caller, login, peer, services.clock.now_ms())
    if not answer.done():
        services.wake()
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            welcome = await answer
    except TimeoutError:
        raise unavailable("too many try to log in") from None
    finally:
        caller.give_up()
    if welcome is None:
        raise login_failed()
    return Identity(welcome.user, node.logins.tags(welcome.user))
