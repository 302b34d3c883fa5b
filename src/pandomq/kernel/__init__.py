"""The per-message work of a broker, in batches; `_fast.pyi` is the contract.

There are two twins. The package uses the compiled one if it was built; it uses the plain one otherwise, or if
PANDOMQ_PLAIN=1 is set. The kernel's public names are those that this module imports and
assigns; they are listed nowhere else.
"""

import importlib.util
import os
from typing import TYPE_CHECKING, Final

from pandomq.kernel import constants
from pandomq.kernel.faults import Content as Content
from pandomq.kernel.faults import Frame as Frame
from pandomq.kernel.faults import ScanFault as ScanFault
from pandomq.kernel.hooks import Hooks as Hooks
from pandomq.kernel.hooks import ReplayHooks as ReplayHooks

PLAIN: Final = bool(os.environ.get("PANDOMQ_PLAIN")) or importlib.util.find_spec("pandomq.kernel._fast") is None

# The type checker sees only the contract. The plain twin implements it too, and is checked separately.
if TYPE_CHECKING or not PLAIN:
    from pandomq.kernel import _fast as twin
else:
    from pandomq.kernel import _plain as twin

KIND: Final = twin.KIND

Channel = twin.Channel
Chunk = twin.Chunk
Consumer = twin.Consumer
DeliveryRun = twin.DeliveryRun
Engine = twin.Engine
Message = twin.Message
Page = twin.Page
Plan = twin.Plan
PublishRun = twin.PublishRun
Queue = twin.Queue
Routes = twin.Routes
Scanner = twin.Scanner
Session = twin.Session
SettleRun = twin.SettleRun
Trace = twin.Trace
crc32 = twin.crc32
routing_of = twin.routing_of
without_messages = twin.without_messages

CONFIRM: Final = constants.CONFIRM
CONFIRMED_BEFORE: Final = constants.CONFIRMED_BEFORE
DELIVERY_LIMIT: Final = constants.DELIVERY_LIMIT
DROP_HEAD: Final = constants.DROP_HEAD
EXPIRED: Final = constants.EXPIRED
IMMEDIATE: Final = constants.IMMEDIATE
MANDATORY: Final = constants.MANDATORY
MAXLEN: Final = constants.MAXLEN
NEVER_MS: Final = constants.NEVER_MS
NORMAL: Final = constants.NORMAL
OVERSIZED: Final = constants.OVERSIZED
RECORD_COMMAND: Final = constants.RECORD_COMMAND
RECORD_DEQUEUE: Final = constants.RECORD_DEQUEUE
RECORD_ENQUEUE: Final = constants.RECORD_ENQUEUE
REJECT_PUBLISH: Final = constants.REJECT_PUBLISH
REJECT_PUBLISH_DEAD_LETTER: Final = constants.REJECT_PUBLISH_DEAD_LETTER
REJECTED: Final = constants.REJECTED
SPECIAL_COPIES: Final = constants.SPECIAL_COPIES
SPECIAL_DELAY: Final = constants.SPECIAL_DELAY
SPECIAL_EXPIRATION: Final = constants.SPECIAL_EXPIRATION
SPECIAL_MALFORMED: Final = constants.SPECIAL_MALFORMED
SPECIAL_PRODUCER: Final = constants.SPECIAL_PRODUCER
SPECIAL_REPLY_TO: Final = constants.SPECIAL_REPLY_TO
SPECIAL_USER_ID: Final = constants.SPECIAL_USER_ID
TRANSACTION: Final = constants.TRANSACTION
