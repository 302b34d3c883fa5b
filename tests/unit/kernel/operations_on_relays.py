"""Operations of a broker that is not the root, for its clients: forward, receive confirms, repeat, mirror."""

from __future__ import annotations

from typing import Any

from pandomq.kernel.constants import NEVER_MS
from tests.unit.kernel.frames import ack, deliver, nack, reject
from tests.unit.kernel.operations import PROPERTIES, one, open_channel, operation
from tests.unit.kernel.world import World


@operation(4)
def link_up(world: World, a: int, b: int, c: int) -> None:
    """A session gets an uplink, another one, or none."""
    session = one(world.sessions, a)
    if session is not None:
        session.uplink = one(world.sessions, b) if c % 4 else None


@operation(3)
def forward(world: World, a: int, b: int, c: int) -> None:
    channel = one(world.channels, a)
    if channel is not None:
        world.engine.forward(channel, world.message(b"f%d" % c, PROPERTIES[b % len(PROPERTIES)]), c % 8)


@operation(8)
def relay_confirms(world: World, a: int, b: int, c: int) -> None:
    channel = one([channel for channel in world.channels if channel.kept_count], a) or one(world.channels, a)
    if channel is None:
        return
    number = max(0, channel.first_kept - 1 + b % (channel.kept_count + 3))
    confirm = [
        ack(number, channel=channel.number),
        ack(number, True, channel=channel.number),
        nack(number, False, False, channel=channel.number),
        nack(number, True, False, channel=channel.number),
        reject(number, False, channel=channel.number),
        ack(number, channel=channel.number) + ack(number + 1, True, channel=channel.number),
    ][c % 6]
    (run,) = world.kernel.Scanner(0, 0).feed(confirm)
    world.engine.relay_confirms(channel.session, run)


@operation(2)
def resend(world: World, a: int, b: int, c: int) -> None:
    channel = open_channel(world, a)
    if channel is not None:
        channel.resend()


@operation(2)
def come_back(world: World, a: int, b: int, c: int) -> None:
    """The forwarded messages have such bodies and flags, see there."""
    channel = one(world.channels, a)
    if channel is not None:
        channel.come_back(world.message(b"f%d" % (c | 1)))


def mirrors(world: World) -> list[Any]:
    return [
        queue for queue, settings in zip(world.queues, world.settings, strict=True)
        if settings.get("mirror") and not queue.deleted
    ]  # fmt: skip


@operation(5)
def subscribe_mirror(world: World, a: int, b: int, c: int) -> None:
    channel = open_channel(world, a)
    if channel is None or len(mirrors(world)) > 3:
        return
    if c % 2 and channel.session.uplink is None:
        channel.session.uplink = one(world.sessions, b)
    world.consumer(channel, world.queue(mirror=True), no_ack=c % 5 == 0, prefetch=(0, 0, 2)[b % 3])


@operation(16)
def mirror(world: World, a: int, b: int, c: int) -> None:
    """As the root delivers: tags rise, in a session, whoever they are for."""
    queues = mirrors(world)
    queue = one(queues, a)
    consumer = one(queue.consumers(), b) if queue is not None else None
    if consumer is None:
        return
    tag = max(each.next_sequence for each in queues) + (b % 13 == 0) * b
    data = b"".join(
        deliver(
            consumer.tag if (c + at) % 11 else b"unknown",
            tag + at,
            b"m%d" % (tag + at),
            PROPERTIES[c % 8],
            channel=consumer.channel.number,
            redelivered=(c + at) % 3 == 0,
            place=(tag + at + 100, b % 3 + 1) if b % 5 else None,
        )
        for at in range(1 + c % 4)
    )
    for run in world.kernel.Scanner(0, 1 << 20, True).feed(data):
        world.engine.mirror(consumer.channel.session, run, world.now_ms)


@operation(4)
def get_mirrored(world: World, a: int, b: int, c: int) -> Any:
    channel, queue = open_channel(world, a), one(mirrors(world), b)
    if channel is None or queue is None:
        return None
    tag = max(each.next_sequence for each in mirrors(world))
    queue.reinstate(world.message(b"g%d" % tag), tag, 0, NEVER_MS, 0, c % 2 == 0)
    got = queue.take(channel, c % 3 == 0, world.now_ms)
    return got and (*got[:2], world.name(got[2]), got[3])


@operation(3)
def settle_again(world: World, a: int, b: int, c: int) -> Any:
    channel = one([channel for channel in world.channels if channel.unproven_count], a)
    if channel is None:
        return None
    if c % 3:
        channel.settle_again()
    else:
        channel.prove(max(0, channel.settled_number - b % 3))
    return channel.unproven_count, channel.settled_number


@operation(2)
def give_back(world: World, a: int, b: int, c: int) -> Any:
    queue = one(mirrors(world), a)
    consumer = one(queue.consumers(), b) if queue is not None else None
    return consumer and consumer.channel.give_back(queue)


@operation(1)
def forget(world: World, a: int, b: int, c: int) -> Any:
    channel, queue = one(world.channels, a), one(world.queues, b)
    if channel is None or queue is None:
        return None
    if c % 2:
        return channel.forget_tag(b % 7)
    channel.forget(queue)
    return channel.outstanding(0, True)


# --- the root's side, and what it sends to all


@operation(5)
def number(world: World, a: int, b: int, c: int) -> Any:
    """A channel gets a producer, and begins to count anew if it may."""
    channel = open_channel(world, a)
    if channel is None:
        return None
    channel.producer = (0, 5, 2**64 - 1, a + 1)[b % 4]
    channel.repeats_through = channel.published_count + c % 3
    if c % 2:
        try:
            channel.set_published(channel.published_count + b)
        except ValueError:
            return "unconfirmed"
    return channel.published_count


@operation(4)
def identify(world: World, a: int, b: int, c: int) -> None:
    consumer = one([consumer for consumer in world.consumers if not consumer.no_ack], a)
    if consumer is not None:
        consumer.identified = b % 4 != 0


@operation(6)
def settle_place(world: World, a: int, b: int, c: int) -> Any:
    channel, queue = open_channel(world, a), one(world.queues, b)
    if channel is None or queue is None:
        return None
    known = [row[:2] for row in queue.snapshot()]
    sequence, term = one(known, c) or (c % max(queue.next_sequence, 1), world.engine.term)
    return channel.settle_place(queue, sequence, term + (a % 7 == 0), 80 if c % 3 else 90)


@operation(4)
def settle_elsewhere(world: World, a: int, b: int, c: int) -> Any:
    channel = open_channel(world, a)
    other = one([channel for channel in world.channels if channel.unacked_count], b)
    if channel is None or other is None:
        return None
    tag = one(other.outstanding(0, True), c)
    if any(row[0].owner in apart(world) for row in other.unacked()):
        return None
    return channel.settle_elsewhere(other, tag + (c % 9 == 0), 80 if c % 3 else 90), other.place_of(tag)


def apart(world: World) -> set[int]:
    """The owners of mirrors and streams: what they have given out is not settled there."""
    return {
        number for number, settings in enumerate(world.settings) if settings.get("mirror") or settings.get("stream")
    }


@operation(4)
def label(world: World, a: int, b: int, c: int) -> None:
    quiet = [consumer for consumer in world.consumers if consumer.no_ack]
    consumer = one(quiet, a) or one(world.consumers, a)
    if consumer is not None:
        consumer.labelled = b % 4 != 0


@operation(8)
def fan_out(world: World, a: int, b: int, c: int) -> Any:
    labels = [b"", (7).to_bytes(8, "big"), (2**63).to_bytes(8, "big"), b"other", bytes(8)]
    data = b"".join(
        deliver(
            labels[(a + at // 2) % 5],
            b % 9 + at,
            b"o%d" % (b + at),
            PROPERTIES[c % len(PROPERTIES)],
            key=("q0", "fan", "q1", "nowhere")[(c + at) % 4].encode(),
        )
        for at in range(1 + a % 5)
    )
    (run,) = world.kernel.Scanner(0, 1 << 20, True).feed(data)
    world.engine.fan_out(world.routes, "trunk", run, world.seen, world.now_ms)
    return dict(world.seen), list(world.seen)
