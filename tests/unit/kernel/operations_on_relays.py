"""What a broker that is not the root does for its clients: forwards, hears confirms, sends again."""

from __future__ import annotations

from tests.unit.kernel.frames import ack, nack, reject
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
