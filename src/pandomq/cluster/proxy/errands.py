"""A lane of the trunk whose questions have nothing to do with each other.

One that the root refuses closes the channel; it is opened again, and those behind are asked once more. What has to hold
at the root is known to who asks: after the trunk was lost all of it is asked anew, and what was to be undone is.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq.cluster.proxy.front_channel import unheeded
from pandomq.methods import ChannelOpen

if TYPE_CHECKING:
    from pandomq.cluster.proxy.lane import Failed, Lane, Question, Then
    from pandomq.cluster.proxy.tunnel import Tunnel
    from pandomq.errors import ChannelFault
    from pandomq.methods import Method


class Errands:
    __slots__ = ("_number", "lane")

    def __init__(self, number: int) -> None:
        self._number = number
        self.lane: Lane | None = None

    def open(self, tunnel: "Tunnel") -> None:
        self.lane = tunnel.lane(self._number, self)
        self.lane.ask(ChannelOpen(), unheeded)

    def detach(self) -> None:
        """Who waits only until all is undone waits no more: the root has forgotten everything."""
        lane, self.lane = self.lane, None
        if lane is not None:
            for question in lane.take_unanswered():
                if question.method is None:
                    question.then(ChannelOpen(), None)

    def ask(self, method: "Method", then: "Then", failed: "Failed | None" = None) -> None:
        """Without a way to the root nothing is asked: it will be, or need not be, when there is one."""
        if self.lane is not None:
            self.lane.ask(method, then, failed)

    @property
    def is_quiet(self) -> bool:
        return self.lane is None or not self.lane.is_asking

    def when_quiet(self, then: Callable[[], None]) -> None:
        if self.lane is None:
            then()
        else:
            self.lane.when_quiet(then)

    def closed_above(self, lane: "Lane", fault: "ChannelFault", unanswered: "list[Question]") -> None:
        self.open(lane.tunnel)
        assert self.lane is not None
        for question in unanswered[1:]:
            if question.method is None:
                self.lane.when_quiet(lambda then=question.then: then(ChannelOpen(), None))  # type: ignore[misc]
            else:
                self.lane.ask(question.method, question.then, question.failed)
        if unanswered and unanswered[0].failed is not None:
            unanswered[0].failed(fault)

    def cancelled_above(self, tag: str) -> None:
        """Nothing is consumed here."""

    def proven_above(self, number: int) -> None:
        """Nor settled."""
