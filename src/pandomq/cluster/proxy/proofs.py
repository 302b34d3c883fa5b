"""What the clients have settled stays known until the root's log has it: the kernel keeps it by the places of the
messages, and the next root is told again (R29).

So a message that was acked does not come back because the root died with the ack; and a later confirm on the channel
proves what it should (P3). The root is asked now and then how far its log is. Until it answers no more than so much is
kept: then the client is not read from.
"""

from typing import TYPE_CHECKING

from pandomq.cluster.proxy.limits import SETTLED_ASK_COUNT
from pandomq.methods import BasicSettle

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front_channel import FrontChannel


class Proofs:
    __slots__ = ("_channel", "_is_asking")

    def __init__(self, channel: "FrontChannel") -> None:
        self._channel = channel
        self._is_asking = False

    def settled(self) -> None:
        """The client has settled something, perhaps of the root's."""
        if not self._is_asking and self._channel.kernel.unproven_count >= SETTLED_ASK_COUNT:
            self._ask()

    def proven(self, number: int) -> None:
        self._is_asking = False
        self._channel.kernel.prove(number)
        self._unsettled.pop(self._channel, None)
        self.settled()

    def lost(self) -> None:
        """The way to the root is lost, and with it perhaps the last settlements."""
        self._is_asking = False
        if self._channel.kernel.unproven_count:
            self._unsettled[self._channel] = None

    def end(self) -> None:
        """The channel is closed."""
        self._unsettled.pop(self._channel, None)

    @property
    def _unsettled(self) -> "dict[FrontChannel, None]":
        return self._channel.client.broker.unsettled

    def resume(self) -> None:
        """There is another root, or another way to the same one. It hears of them before it delivers anything."""
        if self._channel.kernel.unproven_count:
            self._channel.kernel.settle_again()
            self._ask()

    def _ask(self) -> None:
        lane = self._channel.lane
        if lane is not None:
            lane.tell(BasicSettle(self._channel.kernel.settled_number))
            self._is_asking = True
