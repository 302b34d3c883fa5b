"""The readable twin of the kernel: the same contract as `_fast`, and the oracle it is tested against."""

# ruff: noqa: F401 (the imports are the contents)

from typing import Final
from zlib import crc32

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
