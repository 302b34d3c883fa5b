"""Who asks, and what its tags allow on the HTTP side.

What it may do to queues and exchanges is not decided here: that is asked of the broker, by a client under its name.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.admin.refusals import ASK_FOR_LOGIN, Refusal, login_failed
from pandomq.ids import UserName
from pandomq.node.login import login_refusal
from pandomq.wire.inputs import Login

if TYPE_CHECKING:
    from pandomq.node.settings import NodeSettings

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


def authenticate(settings: NodeSettings, user: str, password: bytes, *, from_loopback: bool) -> Identity:
    """Raises Refusal (401)."""
    login = Login("PLAIN", UserName(user), password, {})
    if login_refusal(settings, login, from_loopback=from_loopback) is not None:
        raise login_failed()
    return Identity(user, (ADMINISTRATOR,))
