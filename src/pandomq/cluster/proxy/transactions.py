"""A transaction on a front. The root runs it: publishes go there at once and wait there, settlements go with the
commit; private queues get their part when the root has committed (R24, P5).

The front keeps all of it, too. When the root changes before the commit, the next one gets the publishes again. If the
root fails in the middle of a commit, the front asks the next one for the result, which it knows by a number in the log
(see `FrontChannel.in_doubt`). A transaction that settles what an earlier root had delivered is rolled back: those
messages come again, and the rest must not count twice.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.publishing.copies import without_bcc
from pandomq.broker.publishing.transactions import Target, Transaction
from pandomq.cluster.proxy.front_channel import ROLLED_BACK, ignore_reply
from pandomq.errors import precondition_failed
from pandomq.kernel.constants import ACK, NACK
from pandomq.methods import BasicAck, BasicNack, BasicReject, TxCommit, TxCommitOk, TxRollback

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel

Publish = tuple[kernel.Message, Sequence[Target], int]
Settlement = tuple[int, int, bool]
"""Method, tag, requeue."""


class FrontTransaction(Transaction):
    __slots__ = ("_told",)

    def __init__(self, client: "Client") -> None:
        super().__init__(client)
        self._told: set[int] = set()
        """Tags whose settlement was sent to the root before the commit."""

    def forward(self, channel: "FrontChannel", message: kernel.Message, targets: Sequence[Target], flags: int) -> None:
        """Raises ChannelFault (406) if the transaction becomes too large."""
        self.publish(message, targets, flags)
        _forward(channel, message, targets, flags)

    def resume(self, channel: "FrontChannel") -> None:
        """Another root does not know the transaction."""
        self._told.clear()
        for message, targets, flags in self._publishes:
            _forward(channel, message, targets, flags)

    def tell_settlements(self, channel: "FrontChannel") -> None:
        """The root is about to take back everything that the transaction has not settled."""
        assert channel.lane is not None
        held = channel.held_rows()
        for method_id, tag, requeue in self._shared(channel):
            if tag not in self._told:
                self._told.add(tag)
                sequence = held[tag][1]
                if method_id == ACK:
                    channel.lane.tell(BasicAck(sequence, False))
                elif method_id == NACK:
                    channel.lane.tell(BasicNack(sequence, False, requeue))
                else:
                    channel.lane.tell(BasicReject(sequence, requeue))

    def _shared(self, channel: "FrontChannel") -> list[Settlement]:
        mirrors, held = channel.mirrors, channel.held_rows()
        return [one for one in self._each() if held[one[1]][0] in mirrors]

    def _each(self) -> list[Settlement]:
        return [(method_id, tag, requeue) for method_id, tags, requeue in self._settlements for tag in tags]

    def commit_at_root(self, front: "Front", channel: "FrontChannel") -> None:
        """Commits at the root, which is in reach. Raises ChannelFault."""
        held = channel.held_rows()
        is_void = any(channel.is_void(held[tag][0]) for _, tag, _ in self._each())
        shared = [] if is_void else self._shared(channel)
        here = {tag for _, tag, _ in shared}
        private = [one for one in self._each() if one[1] not in here]
        publishes, told = self._publishes, set(self._told)
        self.rollback()
        if is_void:
            raise precondition_failed(ROLLED_BACK)
        for method_id, tag, requeue in shared:
            if tag in told:
                channel.kernel.forget_tag(tag)
            else:
                front.engine.settle_one(channel.kernel, method_id, tag, False, requeue, front.now_ms)
        channel.commit_count += 1
        channel.client.call_root(channel, TxCommit(), lambda _method, _message: _done(channel, publishes, private))

    def rollback_at_root(self, channel: "FrontChannel") -> None:
        self.rollback()
        if channel.lane is not None:
            channel.lane.ask(TxRollback(), ignore_reply)

    def rollback(self) -> None:
        super().rollback()
        self._told.clear()


def _forward(channel: "FrontChannel", message: kernel.Message, targets: Sequence[Target], flags: int) -> None:
    taken_here = _present(channel.client.vhost, targets)
    channel.client.broker.engine.forward(channel.kernel, message, 0 if taken_here else flags)


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
