"""The text of an error about an object that the broker does not have: the object by its kind and name, and the command
that lists the existing ones.

RabbitMQ's HTTP API, and therefore the broker's, only answers "Not Found", or "vhost_or_user_not_found".
"""

from __future__ import annotations

from typing import Final

from pandomq.runtime.logs import printable

UNNAMED: Final = {"Not Found", "vhost_or_user_not_found"}
"""Reasons of the broker that do not name the missing object."""


def missing(segments: tuple[str, ...]) -> str:
    """Names the object by the path of the request below /api."""
    match segments:
        case ("users", user, *_):
            return _text("user", user, "users list")
        case ("vhosts", vhost, *_) | ("queues" | "exchanges" | "bindings" | "consumers" | "definitions", vhost):
            return _text("vhost", vhost, "vhosts list")
        case ("queues", vhost, queue, *_):
            return _text("queue", queue, "queues", vhost)
        case ("policies", vhost, policy):
            return _text("policy", policy, "policies list", vhost)
        case ("operator-policies", vhost, policy):
            return _text("operator policy", policy, "policies list --operator", vhost)
        case ("permissions" | "topic-permissions", vhost, user):
            return (
                f"vhost '{printable(vhost)}' or user '{printable(user)}' does not exist, or the user has "
                "no permissions there; `pandomq vhosts list`, `pandomq users list` and `pandomq permissions list` show "
                "what exists"
            )
        case ("connections", name, *_):
            return _text("connection", name, "connections")
        case _:
            return f"{printable(' '.join(segments))}: Not Found"


def _text(kind: str, name: str, listing: str, vhost: str | None = None) -> str:
    place = "" if vhost is None else f" in vhost '{printable(vhost)}'"
    return f"{kind} '{printable(name)}' does not exist{place}; `pandomq {listing}` lists the existing ones"
