"""A transaction on a front. It is the root's: publishes and settlements are kept here until the commit, and go to the
root together with it; private queues get their part when the root has done its own (R24, P5).

What the root did when it went away in the middle of a commit is asked of the next one, which knows by a number in the
log (see `FrontChannel.in_doubt`). A transaction that settles what an earlier root had delivered is rolled back: that
comes again, and the rest must not count twice.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.copies import without_bcc
from pandomq.broker.transactions import Target, Transaction
from pandomq.cluster.proxy.front_channel import ROLLED_BACK
from pandomq.errors import precondition_failed
from pandomq.methods import TxCommit, TxCommitOk

if TYPE_CHECKING:
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel

Publish = tuple[kernel.Message, Sequence[Target], int]
Settlement = tuple[int, int, bool]
"""Method, tag, requeue."""


class FrontTransaction(Transaction):
    __slots__ = ("is_void",)

    def __init__(self, bytes_max: int) -> None:
        super().__init__(bytes_max)
        self.is_void = False
        """Something that it settles is no longer there to be settled."""

    def commit_at_root(self, front: "Front", channel: "FrontChannel") -> None:
        """The root is in reach. Raises ChannelFault."""
        publishes, settlements = self._publishes, self._settlements
        is_void, self.is_void = self.is_void, False
        self._clear()
        engine, now_ms, vhost = front.engine, front.now_ms, channel.client.vhost
        if is_void:
            raise precondition_failed(ROLLED_BACK)
        outstanding = dict(zip(channel.kernel.outstanding(0, True), channel.kernel.unacked(), strict=True))
        mirrors = channel.mirrors
        private: list[Settlement] = []
        for method_id, tags, requeue in settlements:
            for tag in tags:
                queue = outstanding[tag][0]
                if channel.is_void(queue):
                    raise precondition_failed(ROLLED_BACK)
                if queue not in mirrors:
                    private.append((method_id, tag, requeue))
        for message, targets, flags in publishes:
            engine.forward(channel.kernel, message, 0 if _present(vhost, targets) else flags)
        for method_id, tags, requeue in settlements:
            for tag in tags:
                if outstanding[tag][0] in mirrors:
                    engine.settle_one(channel.kernel, method_id, tag, False, requeue, now_ms)
        channel.commit_count += 1
        channel.client.call_root(channel, TxCommit(), lambda _method, _message: _done(channel, publishes, private))

    def rollback(self) -> None:
        super().rollback()
        self.is_void = False


def _done(channel: "FrontChannel", publishes: Sequence[Publish], settlements: Sequence[Settlement]) -> None:
    """The root has committed."""
    front = channel.client.broker
    for message, targets, _ in publishes:
        queues = _present(channel.client.vhost, targets)
        if queues:
            shown = without_bcc(message) if message.special & kernel.SPECIAL_COPIES else message
            front.engine.enqueue(None, shown, queues, 0, front.now_ms)
    for method_id, tag, requeue in settlements:
        front.engine.settle_one(channel.kernel, method_id, tag, False, requeue, front.now_ms)
    channel.reply(TxCommitOk())


def _present(vhost: "Vhost", targets: Sequence[Target]) -> list[kernel.Queue]:
    """The private queues that have these names now."""
    places = [vhost.find_destination(target) for target in targets if isinstance(target, str)]
    present = {place.kernel: None for place in places if place is not None and place.owner is not None}
    return list(present)
