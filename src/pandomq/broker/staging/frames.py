"""Checks staged messages when they arrive, as if they were published then: later no client is connected for an
error."""

from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker.administration.quotas import Tally
from pandomq.broker.channel import Channel
from pandomq.broker.client import Client
from pandomq.broker.publishing.publishing import checked, route
from pandomq.errors import frame_error, no_route, precondition_failed
from pandomq.limits import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from pandomq.broker.administration.permissions import VhostAccess
    from pandomq.broker.broker import Broker
    from pandomq.broker.vhost import Vhost

CHANNEL: Final = 1
_UNFIT: Final = kernel.SPECIAL_REPLY_TO | kernel.SPECIAL_PRODUCER


def publishes_of(broker: "Broker", frames: bytes) -> kernel.PublishRun | None:
    """None if there are none. Raises ConnectionFault (501) if it is not whole publishes, one after the other."""
    scanner = kernel.Scanner(FRAME_BYTES_MAX, broker.limits.message_bytes_max)
    found = scanner.feed(frames)
    if len(found) > 1 or scanner.buffered_bytes or not all(isinstance(item, kernel.PublishRun) for item in found):
        fault = next((item.reply_text for item in found if isinstance(item, kernel.ScanFault)), "")
        raise frame_error(f"the staged part does not consist of whole messages: {fault}".rstrip(": "))
    return found[0] if found else None


def check(broker: "Broker", vhost: "Vhost", access: "VhostAccess", frames: bytes, *, routed: bool = False) -> None:
    """Raises ChannelFault or ConnectionFault for the first message that the user may not publish; if they are to be
    `routed`, also for the first one that no queue would take now (312)."""
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
                raise frame_error(f"staged messages must be on channel {CHANNEL}")
            if flags & ~kernel.OVERSIZED:
                raise precondition_failed("staged messages cannot be mandatory or immediate")
            if message.special & _UNFIT:
                raise precondition_failed("staged messages cannot have a direct reply-to or a producer's number")
            exchange, message, keys = checked(broker, channel, message, flags)
            plan = vhost.router.plan(exchange, message.routing_key) if routed and keys is None else None
            if routed and not (route(vhost, exchange, message, keys) if plan is None else plan.queues):
                raise no_route(
                    f"no queue is bound for a message to exchange '{exchange.name}' in vhost '{vhost.name}' with "
                    f"routing key '{message.routing_key}'"
                )
            if plan is not None or not routed:
                # Where no plan exists, each message may go elsewhere.
                known.add(message.routing)
    finally:
        end(channel, broker.now_ms)


def channel_of(broker: "Broker", vhost: "Vhost", access: "VhostAccess", user: str) -> Channel:
    """A channel of a placeholder client, which is not among the clients. Messages that it cannot publish are dropped,
    without further effect: there is no client to notify."""
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
