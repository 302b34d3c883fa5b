"""Classes channel and confirm on a front."""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.methods import on_channel, on_confirm
from pandomq.methods import ChannelClose, ConfirmSelect

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel


def close(front: "Front", channel: "FrontChannel", method: ChannelClose) -> None:
    """The root closes first: a client that gets the answer may at once look elsewhere for what was unacked."""
    if channel.lane is None:
        on_channel.close(front, channel, method)
        return
    channel.client.call_root(channel, ChannelClose(200, "", 0, 0), lambda _answer, _message: _closed(channel, method))


def _closed(channel: "FrontChannel", method: ChannelClose) -> None:
    channel.lane = None
    channel.answers.give_all()
    on_channel.close(channel.client.broker, channel, method)


def confirm(front: "Front", channel: "FrontChannel", method: ConfirmSelect) -> None:
    already = channel.kernel.mode == kernel.CONFIRM
    on_confirm.select(front, channel, method)
    if channel.lane is not None and not already:
        channel.lane.tell(ConfirmSelect(no_wait=True))
