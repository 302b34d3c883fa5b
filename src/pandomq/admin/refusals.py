"""The reasons why a request is rejected, as a status and RabbitMQ's JSON: {"error": …, "reason": …}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pandomq.errors import Fault

REALM: Final = 'Basic realm="PandoMQ Management"'
ASK_FOR_LOGIN: Final = {"www-authenticate": REALM}

_NOT_FOUND: Final = 404
_ACCESS_REFUSED: Final = 403
_NOT_ALLOWED: Final = 530


class Refusal(Exception):
    def __init__(self, status: int, error: str, reason: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, error, reason)
        self.status = status
        self.error = error
        self.reason = reason
        self.headers = headers or {}


def bad_request(reason: Any) -> Refusal:
    return Refusal(400, "bad_request", reason)


def missing_key(name: str) -> Refusal:
    return bad_request(f"[{{key_missing,{name}}}]")


def not_authorised(reason: str) -> Refusal:
    return Refusal(401, "not_authorised", reason)


def login_failed() -> Refusal:
    return Refusal(401, "not_authorized", "Login failed", ASK_FOR_LOGIN)


def not_found() -> Refusal:
    return Refusal(404, "Object Not Found", "Not Found")


def broker_not_found(name: str) -> Refusal:
    return Refusal(404, "not_found", f"broker '{name}' is not a member of this cluster: `pandomq members` lists them")


def vhost_not_found() -> Refusal:
    return Refusal(404, "not_found", "vhost_not_found")


def unavailable(reason: str) -> Refusal:
    return Refusal(503, "service_unavailable", reason)


def too_large(reason: str) -> Refusal:
    return Refusal(413, "bad_request", reason)


def of_fault(fault: Fault) -> Refusal:
    """The broker's fault for a request that is an AMQP method, with its text without the code's name."""
    reason = fault.reply_text.partition(" - ")[2] or fault.reply_text
    if fault.reply_code == _NOT_FOUND:
        return Refusal(404, "not_found", reason)
    if fault.reply_code in (_ACCESS_REFUSED, _NOT_ALLOWED):
        return not_authorised(reason)
    return bad_request(reason)


def of_administration_fault(fault: Fault) -> Refusal:
    """The broker's fault for an administrator's command; its texts are written for people already."""
    return not_found() if fault.reply_code == _NOT_FOUND else bad_request(fault.reply_text)
