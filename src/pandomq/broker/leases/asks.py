"""Requests for leases: of which queue, under which name, how large and for how long."""

import re
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.queues.queue_arguments import QUORUM
from pandomq.errors import ChannelFault, ConnectionFault, not_implemented, precondition_failed
from pandomq.limits import (
    LEASE_BYTES_MAX,
    LEASE_MESSAGES_MAX,
    LEASE_NAME_BYTES_MAX,
    LEASE_TIMEOUT_MS_MAX,
    LEASE_TIMEOUT_MS_MIN,
)

if TYPE_CHECKING:
    from pandomq.broker.queues.queue import Queue

STREAM: Final = "stream"
_NAME: Final = re.compile(f"[A-Za-z0-9_-]{{1,{LEASE_NAME_BYTES_MAX}}}")


class LeaseEnds(Exception):
    """The lease's messages are going back; a new lease of the same name is possible when that is done, soon."""


class LeaseAsk(msgspec.Struct, frozen=True):
    vhost: str
    queue: str
    name: str
    user: str
    """The user for whom its stream is made."""
    messages_max: int
    """The maximum number of leased messages that are not released."""
    bytes_max: int
    """Maximum size of the bodies together; the last one may exceed it."""
    timeout_ms: int
    """The time after the last request when the lease ends."""


def check_ask(ask: LeaseAsk) -> None:
    """Raises ChannelFault (406)."""
    if _NAME.fullmatch(ask.name) is None:
        raise precondition_failed(
            f"the name of a lease must consist of 1 to {LEASE_NAME_BYTES_MAX} letters, digits, '_' and '-', not "
            f"'{ask.name[:80]}'"
        )
    for what, value, least, most in (
        ("messages_max", ask.messages_max, 0, LEASE_MESSAGES_MAX),
        ("bytes_max", ask.bytes_max, 0, LEASE_BYTES_MAX),
        ("timeout_ms", ask.timeout_ms, LEASE_TIMEOUT_MS_MIN, LEASE_TIMEOUT_MS_MAX),
    ):
        if not least <= value <= most:
            raise precondition_failed(f"the {what} of a lease must be between {least} and {most}, not {value}")


def queue_refusal(queue: "Queue") -> ChannelFault | ConnectionFault | None:
    """Why no user can lease messages of this queue."""
    if queue.owner is not None:
        fault = queue.locked()
        assert isinstance(fault, ChannelFault)
        return fault
    if queue.settings.type == STREAM:
        return not_implemented(f"{queue.resource} is a stream: read it by offset, without a lease")
    if queue.is_local:
        return not_implemented(
            f"{queue.resource} does not replicate its messages, which therefore cannot be leased: declare it without "
            "'x-replicate', or change the policy's 'replicate'"
        )
    if queue.settings.single_active and queue.settings.type == QUORUM:
        return not_implemented(
            f"{queue.resource} is a quorum queue with a single active consumer, which cannot be leased"
        )
    return None
