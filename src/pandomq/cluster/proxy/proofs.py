"""What a confirm proves on a channel that also acks: that the acks before it are committed (P3).

With the root that dies go acks that were on their way to it, and what it had delivered comes back from the next one,
whatever the client says of it afterwards. On a channel with confirms the next confirm would prove what is not so.
Therefore such a channel is closed, with an error that says why: when the way to the root is lost while an ack is not
proven, or when something is acked that an earlier root has delivered. Channels without confirms prove nothing, and go
on.
"""

from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.errors import ChannelFault, precondition_failed
from pandomq.kernel.constants import ACK

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.front_client import FrontClient

IN_DOUBT: Final = "the root changed, and it is not known which acks it had; what they were for may come back"


class Proofs:
    __slots__ = ("_channel", "_mark", "_void")

    def __init__(self, channel: "FrontChannel") -> None:
        self._channel = channel
        self._mark: int | None = None
        """Publishes after this one came after an ack that no confirm has proven yet."""
        self._void: set[int] = set()
        """Tags of what an earlier root has delivered, and the client may still settle."""

    def settled(self) -> None:
        """The client settles something, perhaps of the root's."""
        place = self._channel.kernel
        if not self._channel.owes_acks:
            return
        if self._mark is None or place.first_kept > self._mark + 1:
            self._mark = place.published_count

    def lost(self) -> ChannelFault | None:
        """The way to the root is lost. Why the channel is to be closed, if it is."""
        place, mark = self._channel.kernel, self._mark
        self._mark = None
        self._void |= {
            tag
            for tag, (queue, _) in self._channel.held_rows().items()
            if self._channel.is_void(queue) and not queue.owner.reads_stream
        }
        if place.mode == kernel.CONFIRM and mark is not None and place.first_kept <= mark + 1:
            return precondition_failed(IN_DOUBT)
        return None

    def voids(self, method_id: int, tag: int, *, multiple: bool, requeue: bool) -> bool:
        """This settlement would have to remove what has come back."""
        if not self._void or (method_id != ACK and requeue):
            return False
        return any(void <= tag for void in self._void) if multiple else tag in self._void


def note_settlements(client: "FrontClient", run: kernel.SettleRun) -> None:
    """Before it is handled."""
    proving = {
        channel.number: channel
        for channel in client.front_channels
        if channel.kernel.mode == kernel.CONFIRM and not channel.closing
    }
    if not proving:
        return
    settling: set[int] = set()
    for position in range(len(run)):
        number, method_id, tag, multiple, requeue = run[position]
        channel = proving.get(number)
        if channel is None:
            continue
        settling.add(number)
        if channel.proofs.voids(method_id, tag, multiple=multiple, requeue=requeue):
            client.broker.faults.close_channel(channel, precondition_failed(IN_DOUBT))
            del proving[number]
            settling.discard(number)
    for number in settling:
        proving[number].proofs.settled()
