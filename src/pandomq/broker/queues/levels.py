"""How reliably a queue keeps a message (R22).

    reliable-persistent    on the disks of a commit quorum of brokers
    reliable-transient     in the memories of a commit quorum, and on their disks soon after
    persistent             on the disk of one broker
    transient              in the memory of one broker

The messages of a local queue (`x-replicate` none or configuration) are transient while several brokers keep the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pandomq.broker.queues.queue_arguments import QUORUM, REPLICATIONS, STREAM
from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.queues.queue import Queue

RELIABLE_PERSISTENT: Final = "reliable-persistent"
RELIABLE_TRANSIENT: Final = "reliable-transient"
PERSISTENT: Final = "persistent"
TRANSIENT: Final = "transient"


def level_of(queue: Queue, *, persistent: bool, is_alone: bool, replicated: bool) -> str:
    """The level of a message in this queue. `is_alone`: one broker keeps the log; `replicated`: more than one broker
    commits its entries."""
    if not queue.durable or (queue.is_local and not is_alone):
        return TRANSIENT
    # A stream keeps every message as if it were persistent.
    persistent = persistent or queue.settings.type == STREAM
    if not replicated:
        return PERSISTENT if persistent else TRANSIENT
    return RELIABLE_PERSISTENT if persistent or queue.settings.type == QUORUM else RELIABLE_TRANSIENT


def check_replication(arguments: Mapping[str, Any], resource: str) -> None:
    """For a new queue or exchange. Raises ChannelFault (406)."""
    named = [name for name in ("x-replicate", "qpid.replicate") if name in arguments]
    for name in named:
        if arguments[name] not in REPLICATIONS:
            raise precondition_failed(f"invalid arg '{name}' for {resource}: invalid_replicate")
    wanted = {_same(arguments[name]) for name in named}
    if len(wanted) > 1:
        raise precondition_failed(f"invalid arg 'x-replicate' for {resource}: it contradicts 'qpid.replicate'")


def _same(value: str) -> str:
    return "messages" if value == "all" else value
