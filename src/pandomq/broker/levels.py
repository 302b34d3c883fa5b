"""How reliable a queue keeps a persistent message (R22).

    reliable-persistent    on the disks of a commit quorum of brokers
    persistent             on the disk of one broker
    transient              in memory

A message that is not persistent is transient in every queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.queue import Queue

RELIABLE_PERSISTENT: Final = "reliable-persistent"
PERSISTENT: Final = "persistent"
TRANSIENT: Final = "transient"

_UNREPLICATED: Final = frozenset(("none", "configuration"))


def level_of(queue: Queue, *, replicated: bool) -> str:
    """`replicated`: the log is kept by more than one broker."""
    if not queue.durable:
        return TRANSIENT
    return RELIABLE_PERSISTENT if replicated else PERSISTENT


def check_replication(arguments: Mapping[str, Any], resource: str, *, durable: bool, replicated: bool) -> None:
    """Of a new queue. Raises ChannelFault (406)."""
    wanted = {_same(arguments[name]) for name in ("x-replicate", "qpid.replicate") if name in arguments}
    if len(wanted) > 1:
        raise precondition_failed(f"invalid arg 'x-replicate' for {resource}: it contradicts 'qpid.replicate'")
    if wanted & _UNREPLICATED and durable and replicated:
        raise precondition_failed(
            f"invalid arg 'x-replicate' for {resource}: durable queues of one broker alone are not available in a "
            f"cluster of several; declare it without the argument, or not durable"
        )


def _same(value: str) -> str:
    return "messages" if value == "all" else value
