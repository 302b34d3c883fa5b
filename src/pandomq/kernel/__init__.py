"""The per-message work of a broker, in batches; `_fast.pyi` is the contract.

There are two twins. The compiled one is taken if it is there, the plain one if not or if PANDOMQ_PLAIN=1 asks for it.
"""

import importlib.util
import os
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import (
    CONFIRM,
    DELIVERY_LIMIT,
    DROP_HEAD,
    EXPIRED,
    IMMEDIATE,
    MANDATORY,
    MAXLEN,
    NEVER_MS,
    NORMAL,
    OVERSIZED,
    RECORD_COMMAND,
    RECORD_DEQUEUE,
    RECORD_ENQUEUE,
    REJECT_PUBLISH,
    REJECT_PUBLISH_DEAD_LETTER,
    REJECTED,
    SPECIAL_COPIES,
    SPECIAL_DELAY,
    SPECIAL_EXPIRATION,
    SPECIAL_MALFORMED,
    SPECIAL_PRODUCER,
    SPECIAL_REPLY_TO,
    SPECIAL_USER_ID,
    TRANSACTION,
)
from pandomq.kernel.faults import Content, Frame, ScanFault
from pandomq.kernel.hooks import Hooks, ReplayHooks

PLAIN: Final = bool(os.environ.get("PANDOMQ_PLAIN")) or importlib.util.find_spec("pandomq.kernel._fast") is None

# To the type checker the contract is all there is: the plain twin keeps it too, and is checked for itself.
if TYPE_CHECKING or not PLAIN:
    from pandomq.kernel._fast import (
        KIND,
        Channel,
        Chunk,
        Consumer,
        DeliveryRun,
        Engine,
        Message,
        Page,
        Plan,
        PublishRun,
        Queue,
        Routes,
        Scanner,
        Session,
        SettleRun,
        crc32,
        routing_of,
        without_messages,
    )
else:
    from pandomq.kernel._plain import (
        KIND,
        Channel,
        Chunk,
        Consumer,
        DeliveryRun,
        Engine,
        Message,
        Page,
        Plan,
        PublishRun,
        Queue,
        Routes,
        Scanner,
        Session,
        SettleRun,
        crc32,
        routing_of,
        without_messages,
    )

__all__ = [
    "CONFIRM",
    "DELIVERY_LIMIT",
    "DROP_HEAD",
    "EXPIRED",
    "IMMEDIATE",
    "KIND",
    "MANDATORY",
    "MAXLEN",
    "NEVER_MS",
    "NORMAL",
    "OVERSIZED",
    "RECORD_COMMAND",
    "RECORD_DEQUEUE",
    "RECORD_ENQUEUE",
    "REJECTED",
    "REJECT_PUBLISH",
    "REJECT_PUBLISH_DEAD_LETTER",
    "SPECIAL_COPIES",
    "SPECIAL_DELAY",
    "SPECIAL_EXPIRATION",
    "SPECIAL_MALFORMED",
    "SPECIAL_PRODUCER",
    "SPECIAL_REPLY_TO",
    "SPECIAL_USER_ID",
    "TRANSACTION",
    "Channel",
    "Chunk",
    "Consumer",
    "Content",
    "DeliveryRun",
    "Engine",
    "Frame",
    "Hooks",
    "Message",
    "Page",
    "Plan",
    "PublishRun",
    "Queue",
    "ReplayHooks",
    "Routes",
    "ScanFault",
    "Scanner",
    "Session",
    "SettleRun",
    "crc32",
    "routing_of",
    "without_messages",
]
