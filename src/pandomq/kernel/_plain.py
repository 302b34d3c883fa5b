"""The readable twin of the kernel: the same contract as `_fast`, and the oracle it is tested against."""

from typing import Final
from zlib import crc32

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
from pandomq.kernel.plain.channel import Channel
from pandomq.kernel.plain.chunk import Chunk
from pandomq.kernel.plain.consumer import Consumer
from pandomq.kernel.plain.engine import Engine
from pandomq.kernel.plain.excerpt import without_messages
from pandomq.kernel.plain.message import Message, routing_of
from pandomq.kernel.plain.page import Page
from pandomq.kernel.plain.queue import Queue
from pandomq.kernel.plain.routes import Plan, Routes
from pandomq.kernel.plain.runs import DeliveryRun, PublishRun, SettleRun
from pandomq.kernel.plain.scanner import Scanner
from pandomq.kernel.plain.session import Session
from pandomq.kernel.plain.trace import Trace

KIND: Final = "plain"

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
    "Message",
    "Page",
    "Plan",
    "PublishRun",
    "Queue",
    "Routes",
    "ScanFault",
    "Scanner",
    "Session",
    "SettleRun",
    "Trace",
    "crc32",
    "routing_of",
    "without_messages",
]
