"""The clients' settlements are kept until the root's log has them: the kernel keeps them by the places of the messages,
and the next root gets them again (R29).

So a message that was acked does not come back because the root crashed with the ack; and a later confirm on the channel
proves what it should (P3). From time to time the front asks the root which settlements its log has. Until the root
answers only a limited number is kept: at the limit the client is not read from.
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
        """To be called when the client has settled something, perhaps messages of the root."""
        if not self._is_asking and self._channel.kernel.unproven_count >= SETTLED_ASK_COUNT:
            self._ask()

    def proven(self, number: int) -> None:
        self._is_asking = False
        self._channel.kernel.prove(number)
        self._unsettled.pop(self._channel, None)
        self.settled()

    def lost(self) -> None:
        """To be called when the connection to the root is lost: the last settlements may not have reached the root."""
        self._is_asking = False
        if self._channel.kernel.unproven_count:
            self._unsettled[self._channel] = None

    def end(self) -> None:
        """To be called when the channel is closed."""
        self._unsettled.pop(self._channel, None)

    @property
    def _unsettled(self) -> "dict[FrontChannel, None]":
        return self._channel.client.broker.unsettled

    def resume(self) -> None:
        """To be called when there is another root, or another connection to the same one: sends the settlements, which
        the root gets before it delivers anything."""
        if self._channel.kernel.unproven_count:
            self._channel.kernel.settle_again()
            self._ask()

    def _ask(self) -> None:
        lane = self._channel.lane
        if lane is not None:
            lane.tell(BasicSettle(self._channel.kernel.settled_number))
            self._is_asking = True
