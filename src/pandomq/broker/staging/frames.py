"""What is staged is checked when it comes, as if it were published then: later nobody is there to hear of it."""

from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker.channel import Channel
from pandomq.broker.client import Client
from pandomq.broker.publishing import checked
from pandomq.broker.quotas import Tally
from pandomq.errors import frame_error, precondition_failed
from pandomq.limits import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.permissions import Access
    from pandomq.broker.vhost import Vhost

CHANNEL: Final = 1
_UNFIT: Final = kernel.SPECIAL_REPLY_TO | kernel.SPECIAL_PRODUCER


def publishes_of(broker: "Broker", frames: bytes) -> kernel.PublishRun | None:
    """None if there are none. Raises ConnectionFault (501) if it is not whole publishes, one after the other."""
    scanner = kernel.Scanner(FRAME_BYTES_MAX, broker.limits.message_bytes_max)
    found = scanner.feed(frames)
    if len(found) > 1 or scanner.buffered_bytes or not all(isinstance(item, kernel.PublishRun) for item in found):
        fault = next((item.reply_text for item in found if isinstance(item, kernel.ScanFault)), "")
        raise frame_error(f"what is staged is not a number of whole messages: {fault}".rstrip(": "))
    return found[0] if found else None


def check(broker: "Broker", vhost: "Vhost", access: "Access", frames: bytes) -> None:
    """Raises ChannelFault or ConnectionFault for the first message that the user may not publish."""
    run = publishes_of(broker, frames)
    if run is None:
        return
    channel = channel_of(broker, vhost, access, access.user)
    known: set[bytes] = set()
    try:
        for position in range(len(run)):
            number, message, flags = run[position]
            if message.routing in known and not message.special and not flags and number == CHANNEL:
                continue
            if number != CHANNEL:
                raise frame_error(f"what is staged is for channel {CHANNEL}")
            if flags & ~kernel.OVERSIZED:
                raise precondition_failed("what is staged cannot be mandatory or immediate")
            if message.special & _UNFIT:
                raise precondition_failed("what is staged can have no direct reply-to, and no number of its producer")
            checked(broker, channel, message, flags)
            known.add(message.routing)
    finally:
        end(channel, broker.now_ms)


def channel_of(broker: "Broker", vhost: "Vhost", access: "Access", user: str) -> Channel:
    """Of a client that is none, and is not among the clients. What it publishes in vain is dropped, and nothing else
    happens: nobody is there to be told."""
    client = Client(
        broker,
        0,
        user=user,
        vhost=vhost,
        access=access,
        tally=Tally(),
        counted=False,
        origin=None,
        trunk=False,
        identity=0,
        peer="",
        client_properties={},
        frame_max=FRAME_BYTES_MAX,
        channel_max=CHANNEL,
        now_ms=broker.now_ms,
    )
    channel = client.channels[CHANNEL] = Channel(client, CHANNEL)
    # Faults close nothing that is being closed.
    client.failed = channel.closing = True
    return channel


def end(channel: Channel, now_ms: int) -> None:
    session = channel.client.session
    channel.kernel.close(now_ms)
    channel.part_from_kernel()
    channel.client.channels.clear()
    session.close(now_ms)
    session.owner = None
