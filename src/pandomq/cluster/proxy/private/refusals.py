"""Private queues that are full and refuse publishes: the publisher gets a nack, although the root, which does not know
these queues, has confirmed the message.

Only few queues refuse publishes. No cached plan sends messages to them, and the front examines the root's confirms one
by one as long as a refusal waits for its confirm.
"""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.kernel.constants import ACK
from pandomq.limits import FRAME_BYTES_MAX
from pandomq.methods import BasicAck, BasicNack, Method

if TYPE_CHECKING:
    from pandomq.broker.queues.queue import Queue
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.front_client import FrontClient


def may_refuse(queue: kernel.Queue) -> bool:
    owner: Queue = queue.owner
    settings = owner.settings
    return settings.overflow != "drop-head" and (settings.length_max >= 0 or settings.bytes_max >= 0)


def note_refusal(channel: "FrontChannel") -> None:
    """Notes a refusal of the publish that was forwarded last."""
    if channel.kernel.mode == kernel.CONFIRM:
        channel.refused.add(channel.kernel.published_count)
        channel.client.has_refusals = True


def with_refusals(client: "FrontClient", run: kernel.SettleRun) -> kernel.SettleRun:
    """The root's confirms, with nacks for what was refused here."""
    encode = client.broker.encode
    frames: list[bytes] = []
    for position in range(len(run)):
        number, method_id, tag, multiple, _ = run[position]
        channel = client.channels.get(number)
        refused: set[int] = getattr(channel, "refused", set())
        if method_id == ACK:
            frames += [encode(number, method) for method in _confirms(refused, tag, multiple)]
        else:
            frames.append(encode(number, BasicNack(tag, multiple, False)))
        refused -= {one for one in refused if one == tag or (multiple and one < tag)}
    client.has_refusals = any(channel.refused for channel in client.front_channels)
    (rewritten,) = kernel.Scanner(FRAME_BYTES_MAX, 0, inward=True).feed(b"".join(frames))
    assert isinstance(rewritten, kernel.SettleRun)
    return rewritten


def _confirms(refused: set[int], tag: int, multiple: bool) -> list[Method]:
    if not multiple:
        return [BasicNack(tag, False, False) if tag in refused else BasicAck(tag, False)]
    confirms: list[Method] = []
    for one in sorted(one for one in refused if one <= tag):
        confirms += [BasicAck(one - 1, True), BasicNack(one, False, False)]
    if tag not in refused:
        confirms.append(BasicAck(tag, True))
    return confirms
