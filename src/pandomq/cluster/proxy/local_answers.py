"""Answers that a front gives by itself on a channel: they wait until the root has answered everything that was sent to
it on this channel before.

A front answers `basic.qos`, `confirm.select` or a declare of a private queue without the root, or with an answer that
came on another connection. Without this line such an answer would overtake what the root has still to send about an
earlier publish: its `basic.return`, or the exception that closes the channel. A publish has no answer; so, if the
client has published since the last request to the root, the front requests one more answer (`Lane.when_answered`).

Meanwhile nothing is delivered on the channel, and the client is not read from, as if it waited for an answer of the
root. So the line is short. If the root changes, the line stays. The next root gets the request once it has received
again what the last one had not confirmed, and the client has published nothing since. An answer leaves the line, at the
latest, when the root has closed the channel, or when the connection ends because no root was found.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from pandomq.broker.log.held_replies import HeldReply
from pandomq.methods import BasicCancel, BasicDeliver, Method

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.kernel import Message

UNASKED: Final = (BasicCancel, BasicDeliver)
"""Methods that a front sends and that answer no request. Such a method waits only for the answers before it."""


class LocalAnswers:
    __slots__ = ("_channel", "_line")

    def __init__(self, channel: "FrontChannel") -> None:
        self._channel = channel
        self._line: deque[HeldReply] = deque()

    def __len__(self) -> int:
        return len(self._line)

    def must_wait(self, method: Method) -> bool:
        if self._line:
            return True
        if isinstance(method, UNASKED):
            return False
        lane = self._channel.lane
        if lane is None:
            # Either the root was never needed here, or the next one will get these publishes, and may return some.
            return self._channel.reached and bool(self._channel.kernel.kept_count)
        return lane.is_unanswered

    def hold(self, octets: bytes, content: "Message | None" = None) -> None:
        """Holds a whole frame, or the payload of a method whose content follows."""
        channel = self._channel
        client = channel.client
        answer = HeldReply(channel, octets, content, shared=False)
        self._line.append(answer)
        channel.held_count += 1
        client.held_bytes += answer.size_bytes
        channel.kernel.hold()
        if channel.closing:
            # The code that closes the channel for a fault handles this (`FrontClient.close_above`).
            return
        if channel.lane is not None:
            channel.lane.when_answered(self._give_next)
        else:
            client.broker.awaiting.kept_waiting(client)

    def resume(self) -> None:
        """To be called when there is another root, or another connection to the same one, and it has been sent what the
        last one may lack."""
        lane = self._channel.lane
        assert lane is not None
        for _ in range(len(self._line)):
            lane.when_answered(self._give_next)

    def _give_next(self) -> None:
        if self._line:
            self._line.popleft().give()

    def give_all(self) -> None:
        """The root has nothing more to send on this channel."""
        while self._line:
            self._give_next()

    def drop(self) -> None:
        """The client does not wait for them: the root has closed the channel because of something sent before, or the
        client has disconnected."""
        channel = self._channel
        while self._line:
            channel.held_count -= 1
            channel.client.held_bytes -= self._line.popleft().size_bytes
