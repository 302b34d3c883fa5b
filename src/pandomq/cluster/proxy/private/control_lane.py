"""A lane of the trunk whose requests are independent of each other.

A request that the root refuses closes the channel; the channel is opened again, and the requests behind it are sent
once more. The caller keeps a list of what has to exist at the root: after a loss of the trunk it requests all of it
again, and the rest is gone with the trunk.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq.cluster.proxy.front_channel import ignore_reply
from pandomq.methods import ChannelOpen

if TYPE_CHECKING:
    from pandomq.cluster.proxy.lane import Failed, Question, Then, TunnelLane
    from pandomq.cluster.proxy.tunnel import Tunnel
    from pandomq.errors import ChannelFault
    from pandomq.methods import Method


class ControlLane:
    __slots__ = ("_number", "lane")

    def __init__(self, number: int) -> None:
        self._number = number
        self.lane: TunnelLane | None = None

    def open(self, tunnel: "Tunnel") -> None:
        self.lane = tunnel.lane(self._number, self)
        self.lane.ask(ChannelOpen(), ignore_reply)

    def detach(self) -> None:
        """Callers that wait only for the end of all undoing stop waiting: the root has dropped the trunk's state."""
        lane, self.lane = self.lane, None
        if lane is not None:
            for question in lane.take_unanswered():
                if question.method is None:
                    question.then(ChannelOpen(), None)

    def ask(self, method: "Method", then: "Then", failed: "Failed | None" = None) -> None:
        """Without a connection to the root nothing is sent: the request is made when there is one, or is no longer
        needed."""
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

    def closed_above(self, lane: "TunnelLane", fault: "ChannelFault", unanswered: "list[Question]") -> None:
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
        """Never called: nothing is consumed on this lane."""

    def proven_above(self, number: int) -> None:
        """Never called: nothing is settled on this lane."""
