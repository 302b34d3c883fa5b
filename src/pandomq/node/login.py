"""Who may log in: today one user, and guest from the loopback only."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.node.settings import NodeSettings
    from pandomq.wire.inputs import Login


def login_refusal(settings: NodeSettings, login: Login, *, from_loopback: bool) -> str | None:
    """Why this login is refused, for the log (it never says the password); None if it is welcome."""
    if login.user != settings.user or not hmac.compare_digest(login.password, settings.password.encode()):
        return f"unknown user or wrong password for {login.user!r}"
    if login.user in settings.loopback_only_users and not from_loopback:
        return f"user {login.user!r} may connect from the loopback only"
    return None
