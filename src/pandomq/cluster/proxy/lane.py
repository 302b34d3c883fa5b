"""One channel of a tunnel, as the front uses it: its requests in order, and the receivers of the answers.

The root answers the requests of a channel in order. So the next answer belongs to the first request, whatever else
(deliveries, returns, confirms) comes in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from pandomq.errors import ChannelFault
from pandomq.methods import BasicCancel, BasicSettleOk, ChannelClose, ChannelCloseOk, ChannelFlow, Method

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.tunnel import Tunnel

Then: TypeAlias = "Callable[[Method, kernel.Message | None], None]"
"""Gets the answer, and the message that came with it (basic.get-ok)."""
Failed: TypeAlias = "Callable[[ChannelFault], None]"


class Question(NamedTuple):
    method: Method | None
    """The request; None if nothing was requested, and `then` runs once everything before is answered."""
    then: Then
    failed: Failed | None = None
    """Called if the root has closed the channel because of this request."""


class LaneListener(Protocol):
    """The owner of a lane."""

    def closed_above(self, lane: TunnelLane, fault: ChannelFault, unanswered: list[Question]) -> None:
        """The root has closed the channel, which ends the lane. The first unanswered request may be the reason."""

    def cancelled_above(self, tag: str) -> None:
        """A consumer has lost its queue."""

    def proven_above(self, number: int) -> None:
        """Settlements up to this one are in the log."""


class TunnelLane:
    __slots__ = ("_awaited", "has_published", "listener", "number", "taken_from", "tunnel")

    def __init__(self, tunnel: Tunnel, number: int, listener: LaneListener) -> None:
        self.tunnel = tunnel
        self.number = number
        self.listener = listener
        self._awaited: deque[Question] = deque()
        self.has_published = False
        """Publishes may have been sent since the last request; the root may return some of them."""
        self.taken_from = 0
        """The id of the queue that the last basic.get took a message from."""

    @property
    def is_asking(self) -> bool:
        return bool(self._awaited)

    @property
    def is_unanswered(self) -> bool:
        """Whether the root may still send something about what it has received so far."""
        return self.has_published or bool(self._awaited)

    def tell(self, method: Method) -> None:
        """Sends a method that has no answer."""
        self.tunnel.session.write(self.tunnel.front.encode(self.number, method))

    def ask(self, method: Method, then: Then, failed: Failed | None = None) -> None:
        self._awaited.append(Question(method, then, failed))
        self.has_published = False
        self.tunnel.asked_count += 1
        self.tell(method)

    def when_quiet(self, then: Callable[[], None]) -> None:
        """Runs `then` once all requests so far are answered."""
        if self._awaited:
            self._awaited.append(Question(None, lambda _method, _message: then()))
        else:
            then()

    def when_answered(self, then: Callable[[], None]) -> None:
        """Runs `then` once the root has sent everything about what it has received so far, publishes included."""
        if self.has_published:
            # The answer to this comes behind the returns of those publishes, and has no other effect.
            self.ask(ChannelFlow(True), lambda _method, _message: None)
        self.when_quiet(then)

    def close(self, then: Then) -> None:
        """Sends channel.close. The lane ends when the root answers; everything else that the root sends until then is
        ignored."""
        self.take_unanswered()
        self.ask(ChannelClose(200, "", 0, 0), then)

    def hear(self, method: Method, message: kernel.Message | None = None) -> None:
        if isinstance(method, ChannelClose):
            self.tell(ChannelCloseOk())
            self._end(method)
        elif isinstance(method, BasicCancel):
            self.listener.cancelled_above(method.consumer_tag)
        elif isinstance(method, BasicSettleOk):
            self.listener.proven_above(method.number)
        elif self._awaited:
            self._answer(method, message)

    def _end(self, close: ChannelClose) -> None:
        self.tunnel.forget(self)
        unanswered = self.take_unanswered()
        if unanswered and isinstance(unanswered[0].method, ChannelClose):
            # Both sides have closed the channel at the same time. The root also answers our close, and the answer is
            # ignored.
            unanswered[0].then(ChannelCloseOk(), None)
        else:
            fault = ChannelFault(close.reply_code, close.reply_text, close.failed_class_id, close.failed_method_id)
            self.listener.closed_above(self, fault, unanswered)

    def _answer(self, method: Method, message: kernel.Message | None) -> None:
        first = self._awaited[0].method
        if isinstance(first, ChannelClose) is not isinstance(method, ChannelCloseOk):
            # This is an answer that the root gave before it knew that the channel was closed, or the answer to the
            # close of the channel that had this number before.
            return
        question = self._awaited.popleft()
        self.tunnel.asked_count -= 1
        if isinstance(first, ChannelClose):
            self.tunnel.forget(self)
        question.then(method, message)
        while self._awaited and self._awaited[0].method is None:
            self._awaited.popleft().then(method, None)

    def take_unanswered(self) -> list[Question]:
        unanswered = list(self._awaited)
        self._awaited.clear()
        self.tunnel.asked_count -= sum(question.method is not None for question in unanswered)
        return unanswered
