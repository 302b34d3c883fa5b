"""How a broker that is not the root handles the messages of its clients: it puts them into its private queues, and
forwards them to the root."""

import struct
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import ACK, BASIC, CONFIRM, MANDATORY, PUBLISH, PUBLISH_BITS, REJECT, TRANSACTION

if TYPE_CHECKING:
    from pandomq.kernel.plain.channel import Channel
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.message import Message
    from pandomq.kernel.plain.runs import PublishRun, SettleRun
    from pandomq.kernel.plain.session import Session

PUBLISH_START: Final = struct.pack(">HHH", BASIC, PUBLISH, 0)


def publish(engine: "Engine", session: "Session", run: "PublishRun", now_ms: int) -> None:
    """Like Engine.publish, for a session with an uplink. `forward` counts the numbers."""
    hooks, channels, find = engine.hooks, session.channels, session.routes.find
    for number, message, flags in run.items:
        channel = channels.get(number)
        if channel is None:
            if not session.closed:
                hooks.unknown_channel(session, number, BASIC, PUBLISH)
            return
        if not channel.open:
            continue
        engine.published += 1
        plan = None
        if not message.special and flags <= MANDATORY and channel.mode != TRANSACTION:
            plan = find(message.routing)
        if plan is None:
            hooks.publish(channel, message, flags)
            continue
        if plan.queues:
            # A queue of this broker took it: the root must not return it, even if the root has no queue for it.
            engine.enqueue(None, message, plan.queues, 0, now_ms)
            flags = 0
        forward(channel, message, flags)


def forward(channel: "Channel", message: "Message", flags: int) -> None:
    if not channel.open:
        return
    if channel.mode == CONFIRM:
        channel.kept.add(message, flags)
    write(channel, message, flags)


def write(channel: "Channel", message: "Message", flags: int) -> None:
    """A basic.publish to the root."""
    uplink = channel.session.uplink
    if uplink is not None:
        method = b"".join((PUBLISH_START, message.routing, bytes((flags & PUBLISH_BITS,))))
        uplink.write_content(channel.number, method, message)


def relay_confirms(engine: "Engine", session: "Session", run: "SettleRun") -> None:
    for number, method_id, tag, multiple, _ in run.items:
        channel = session.channels.get(number)
        if channel is None or method_id == REJECT:
            continue
        count, last = channel.kept.confirm(tag, multiple)
        if count:
            if method_id == ACK:
                engine.confirmed += count
            channel.confirms.write(method_id, last, multiple)
