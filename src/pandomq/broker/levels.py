"""How reliably a queue keeps a message (R22).

    reliable-persistent    on the disks of a commit quorum of brokers
    reliable-transient     in the memories of a commit quorum, and on their disks soon after
    persistent             on the disk of one broker
    transient              in the memory of one broker

`x-replicate` may ask for less than what a durable queue is given; it is kept like any other all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pandomq.broker.queue_arguments import QUORUM, REPLICATIONS, STREAM
from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.queue import Queue

RELIABLE_PERSISTENT: Final = "reliable-persistent"
RELIABLE_TRANSIENT: Final = "reliable-transient"
PERSISTENT: Final = "persistent"
TRANSIENT: Final = "transient"


def level_of(queue: Queue, *, persistent: bool, replicated: bool) -> str:
    """Of a message in this queue. `replicated`: entries of the log are committed by more than one broker."""
    if not queue.durable:
        return TRANSIENT
    # A stream keeps every message as if it were persistent.
    persistent = persistent or queue.settings.type == STREAM
    if not replicated:
        return PERSISTENT if persistent else TRANSIENT
    return RELIABLE_PERSISTENT if persistent or queue.settings.type == QUORUM else RELIABLE_TRANSIENT


def check_replication(arguments: Mapping[str, Any], resource: str) -> None:
    """Of a new queue or exchange. Raises ChannelFault (406)."""
    named = [name for name in ("x-replicate", "qpid.replicate") if name in arguments]
    for name in named:
        if arguments[name] not in REPLICATIONS:
            raise precondition_failed(f"invalid arg '{name}' for {resource}: invalid_replicate")
    wanted = {_same(arguments[name]) for name in named}
    if len(wanted) > 1:
        raise precondition_failed(f"invalid arg 'x-replicate' for {resource}: it contradicts 'qpid.replicate'")


def _same(value: str) -> str:
    return "messages" if value == "all" else value
