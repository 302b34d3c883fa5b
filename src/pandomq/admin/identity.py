"""Who asks, and what its tags allow on the HTTP side.

What it may do to queues and exchanges is not decided here: that is asked of the broker, by a client under its name.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from pandomq.admin.refusals import ASK_FOR_LOGIN, Refusal, login_failed
from pandomq.ids import UserName
from pandomq.node.logins import Logins, Question, Welcome
from pandomq.wire.inputs import Login

ADMINISTRATOR: Final = "administrator"
MONITORING: Final = "monitoring"
POLICYMAKER: Final = "policymaker"
MANAGEMENT: Final = "management"

# One thread: a flood of wrong passwords takes one core at most, and waits in line for itself.
HASHER: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="http-password")


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


async def authenticate(logins: Logins, user: str, password: bytes, *, from_loopback: bool) -> Identity:
    """Raises Refusal (401). A password that is not known yet is held against its hash outside the loop."""
    answer = logins.ask(Login("PLAIN", UserName(user), password, {}), None, from_loopback=from_loopback)
    if isinstance(answer, Question):
        fits = await asyncio.get_running_loop().run_in_executor(HASHER, answer.fits)
        answer = logins.learn(answer, fits=fits)
    if not isinstance(answer, Welcome):
        raise login_failed()
    return Identity(answer.user, logins.tags(answer.user))
