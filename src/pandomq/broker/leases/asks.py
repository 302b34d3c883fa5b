"""What may be asked for: a lease of which queue, under which name, how large and for how long."""

import re
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.queue_arguments import QUORUM
from pandomq.errors import ChannelFault, ConnectionFault, not_implemented, precondition_failed
from pandomq.limits import (
    LEASE_BYTES_MAX,
    LEASE_MESSAGES_MAX,
    LEASE_NAME_BYTES_MAX,
    LEASE_TIMEOUT_MS_MAX,
    LEASE_TIMEOUT_MS_MIN,
)

if TYPE_CHECKING:
    from pandomq.broker.queue import Queue

STREAM: Final = "stream"
_NAME: Final = re.compile(f"[A-Za-z0-9_-]{{1,{LEASE_NAME_BYTES_MAX}}}")


class LeaseEnds(Exception):
    """What the lease had is going back; one of the same name can be had when that is done, which does not take long."""


class LeaseAsk(msgspec.Struct, frozen=True):
    vhost: str
    queue: str
    name: str
    user: str
    """For whom its stream is made."""
    messages_max: int
    """So many may be leased and not released."""
    bytes_max: int
    """The same for their bodies; the last one may exceed it."""
    timeout_ms: int
    """So long after the last ask the lease ends."""


def check_ask(ask: LeaseAsk) -> None:
    """Raises ChannelFault (406)."""
    if _NAME.fullmatch(ask.name) is None:
        raise precondition_failed(
            f"the name of a lease has 1 to {LEASE_NAME_BYTES_MAX} letters, digits, '_' and '-', not '{ask.name[:80]}'"
        )
    for what, value, least, most in (
        ("messages_max", ask.messages_max, 0, LEASE_MESSAGES_MAX),
        ("bytes_max", ask.bytes_max, 0, LEASE_BYTES_MAX),
        ("timeout_ms", ask.timeout_ms, LEASE_TIMEOUT_MS_MIN, LEASE_TIMEOUT_MS_MAX),
    ):
        if not least <= value <= most:
            raise precondition_failed(f"{what} of a lease is from {least} to {most}, not {value}")


def queue_refusal(queue: "Queue") -> ChannelFault | ConnectionFault | None:
    """Why messages of this queue cannot be leased, by anybody."""
    if queue.owner is not None:
        fault = queue.locked()
        assert isinstance(fault, ChannelFault)
        return fault
    if queue.settings.type == STREAM:
        return not_implemented(f"{queue.resource} is a stream, which is read by offset without a lease")
    if queue.settings.single_active and queue.settings.type == QUORUM:
        return not_implemented(f"{queue.resource} is a quorum queue with a single active consumer")
    return None
