"""A client's channel on a front, and its counterpart at the root, which is opened when it is first needed."""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.channel import Channel
from pandomq.broker.faults import Faults
from pandomq.broker.queues.consumers import ConsumerOptions
from pandomq.cluster.proxy.earlier_deliveries import CANCELLED, EarlierDeliveries
from pandomq.cluster.proxy.local_answers import LocalAnswers
from pandomq.cluster.proxy.mailbox import Mailbox
from pandomq.cluster.proxy.proofs import Proofs
from pandomq.errors import ChannelFault, precondition_failed
from pandomq.kernel.constants import NACK
from pandomq.methods import (
    BasicCancel,
    BasicDeliver,
    BasicQos,
    ChannelOpen,
    ChannelOpenOk,
    ConfirmSelect,
    Method,
    TxSelect,
)

if TYPE_CHECKING:
    from pandomq.cluster.proxy.call import Call
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.cluster.proxy.lane import Question, Then, TunnelLane
    from pandomq.cluster.proxy.transactions import FrontTransaction

PRODUCER_BITS = 63
ROLLED_BACK = "the transaction was rolled back because the root changed"


def ignore_reply(_method: Method, _message: "kernel.Message | None") -> None:
    """Takes answers that need no action."""


class FrontChannel(Channel):
    __slots__ = (
        "_boxes",
        "_taken",
        "answers",
        "commit_count",
        "earlier",
        "in_doubt",
        "lane",
        "made_name",
        "producer_id",
        "proofs",
        "reached",
        "refused",
    )

    client: "FrontClient"
    transaction: "FrontTransaction | None"

    def __init__(self, client: "FrontClient", number: int) -> None:
        super().__init__(client, number)
        self.lane: TunnelLane | None = None
        self.made_name = ""
        """The name of a queue that the root was requested to declare and has not confirmed."""
        self.reached = False
        """The root has the channel, or had it until its tunnel broke."""
        self.producer_id = 0
        """The id of the channel's producer in the log."""
        self.commit_count = 0
        """Transactions that the root was requested to commit."""
        self.in_doubt: Call | None = None
        """A commit that was never answered."""
        self.proofs = Proofs(self)
        self.earlier = EarlierDeliveries(self)
        self.answers = LocalAnswers(self)
        self.refused: set[int] = set()
        """Numbers of publishes that a private queue here refused: they will be nacked, whatever the root answers."""
        self._boxes: dict[Mailbox, None] = {}
        """Mailboxes with a consumer, and others that hold messages that the client has not settled yet."""
        self._taken: dict[int, Mailbox] = {}
        """Mailboxes of basic.get, by the id of the queue."""

    # Replies, in order.

    def reply(self, method: Method) -> None:
        octets = self.client.broker.encode(self.number, method)
        if self.answers.must_wait(method):
            self.answers.hold(octets)
        else:
            self.client.session.write(octets)

    def reply_with_content(self, method: Method, message: kernel.Message, more: bytes = b"") -> None:
        payload = self.client.broker.encode_payload(method) + more
        if self.answers.must_wait(method):
            self.answers.hold(payload, message)
        else:
            self.client.session.write_content(self.number, payload, message)

    def reply_when_settled(self, method: Method) -> None:
        """A front has no log that its own answers could wait for."""
        self.reply(method)

    def reply_when_committed(self, method: Method) -> None:
        self.reply(method)

    # The connection to the root.

    def reach(self) -> "TunnelLane | None":
        """The lane to the root; None if there is no connection now. The client then repeats the request when there is
        one."""
        if not self.client.reach():
            return None
        if self.lane is None:
            self.open_lane()
            self._set_prefetch(self.prefetch_count)
        return self.lane

    def ask(self, method: Method, then: "Then") -> None:
        """Sends a request; the client waits for the answer. Does nothing if the root is out of reach: the client then
        repeats it."""
        if self.reach() is not None:
            self.client.call_root(self, method, then)

    def open_lane(self) -> None:
        tunnel = self.client.tunnel
        assert tunnel is not None
        if not self.producer_id:
            self.producer_id = self.client.broker.random.getrandbits(PRODUCER_BITS) | 1
        self.reached = True
        lane = self.lane = tunnel.lane(self.number, self)
        mode = self.kernel.mode
        if mode == kernel.CONFIRM:
            # Publishes that are sent again now may have been delivered by an earlier root.
            numbers = f"{self.kernel.first_kept - 1}:{self.kernel.published_count}"
        else:
            numbers = f"{self.commit_count}"
        lane.ask(ChannelOpen(f"{self.producer_id}:{numbers}"), self._opened_above)
        if mode == kernel.CONFIRM:
            lane.tell(ConfirmSelect(no_wait=True))
        elif mode == kernel.TRANSACTION:
            lane.ask(TxSelect(), ignore_reply)
        self.proofs.resume()
        self.earlier.resume()

    def _opened_above(self, method: Method, _message: "kernel.Message | None") -> None:
        call, self.in_doubt = self.in_doubt, None
        if call is None or not isinstance(method, ChannelOpenOk):
            return
        if int(method.channel_id or b"0") >= self.commit_count:
            call.answer(method)
        else:
            call.end(lambda: self._fail(precondition_failed(ROLLED_BACK)))

    def _set_prefetch(self, prefetch_count: int) -> None:
        assert self.lane is not None
        if prefetch_count:
            self.lane.ask(BasicQos(0, prefetch_count, False), ignore_reply)
        if self.kernel.prefetch_max:
            self.lane.ask(BasicQos(0, self.kernel.prefetch_max, True), ignore_reply)

    # The connection is lost, and found again.

    def detach(self) -> None:
        """Deliveries stay with the client; messages that it does not settle will be delivered again."""
        self.lane = None
        if self.closing:
            # The root has closed the channel with the tunnel.
            self.answers.give_all()
        for box in list(self._boxes):
            tag = self._tag_of(box)
            self.earlier.lost(CANCELLED if tag is None else tag, box.kernel)
            box.renew()
            if tag is None:
                self._forget(box)
            else:
                self._listen(box, tag)
        self._forget_taken()
        self.proofs.lost()

    def consuming(self) -> list[Mailbox]:
        return [box for box in self._boxes if self._tag_of(box) is not None]

    def resume(self, box: Mailbox) -> None:
        """Another root shall deliver as before, unless the queue has been deleted meanwhile."""
        assert self.lane is not None and box.consume is not None
        if box.name not in self.client.vhost.queues:
            self.cancelled_above(box.consume.consumer_tag)
            return
        self.lane.ask(BasicQos(0, box.prefetch_count, False), ignore_reply)
        self.lane.ask(box.consume_again(), lambda answer, _message: box.begun(answer))

    def resume_all_else(self) -> None:
        assert self.lane is not None
        self.lane.ask(BasicQos(0, self.prefetch_count, False), ignore_reply)
        if self.kernel.prefetch_max:
            self.lane.ask(BasicQos(0, self.kernel.prefetch_max, True), ignore_reply)
        self.lane.has_published = bool(self.kernel.kept_count)
        self.kernel.resend()
        if self.transaction is not None:
            self.transaction.resume(self)
        self.answers.resume()

    # Mailboxes.

    def open_box(self, box: Mailbox, tag: str) -> None:
        """From now on the root delivers to this mailbox."""
        self._boxes[box] = None
        self.client.reads_streams = self.client.reads_streams or box.reads_stream
        self._listen(box, tag)

    def _listen(self, box: Mailbox, tag: str) -> None:
        consume = box.consume
        assert consume is not None
        consumer = kernel.Consumer(
            self.kernel,
            box.kernel,
            tag.encode(),
            consume.no_ack,
            box.prefetch_count,
            0,
            ConsumerOptions(consume.exclusive, consume.arguments),
        )
        if tag in self.consumers:
            self.pop_consumer(tag)
        self.add_consumer(tag, consumer)

    def _tag_of(self, box: Mailbox) -> str | None:
        tag = None if box.consume is None else box.consume.consumer_tag
        consumer = None if tag is None else self.consumers.get(tag)
        return tag if consumer is not None and consumer.queue is box.kernel else None

    def close_box(self, tag: str) -> None:
        """The root no longer delivers to this consumer. Messages that it had delivered, and the client has not taken
        yet, go back; if they need no ack, the root no longer has them, and the client gets them now."""
        consumer = self.pop_consumer(tag)
        if consumer is None:
            return
        if consumer.no_ack:
            self._pour_out(consumer.queue, tag)
        else:
            self.kernel.give_back(consumer.queue)
        consumer.cancel()
        self.earlier.cancelled(tag)
        for other in list(self._boxes):
            if self._tag_of(other) is None and not other.kernel.unacked_count:
                self._forget(other)

    def _pour_out(self, mirror: kernel.Queue, tag: str) -> None:
        while (taken := mirror.take(self.kernel, True, self.client.broker.now_ms)) is not None:
            delivery_tag, redelivered, message, _ = taken
            method = BasicDeliver(tag, delivery_tag, redelivered, message.exchange, message.routing_key)
            self.reply_with_content(method, message)

    def _forget(self, box: Mailbox) -> None:
        self._boxes.pop(box, None)
        box.close()

    def box_of_taken(self, queue_id: int) -> Mailbox:
        box = self._taken.get(queue_id)
        if box is None:
            self._forget_taken(settled=True)
            box = self._taken[queue_id] = Mailbox(self, "")
            box.kernel.queue_id = queue_id
        return box

    def _forget_taken(self, *, settled: bool = False) -> None:
        """Drops all these mailboxes, or those of which the client has settled everything."""
        for queue_id, box in list(self._taken.items()):
            if not settled or not box.kernel.unacked_count:
                del self._taken[queue_id]
                box.close()

    @property
    def mirrors(self) -> set[kernel.Queue]:
        """The kernel queues of all existing mailboxes."""
        return {box.kernel for box in (*self._boxes, *self._taken.values())}

    @staticmethod
    def is_void(queue: kernel.Queue) -> bool:
        """The queue's messages came from an earlier root."""
        return queue.deleted and isinstance(queue.owner, Mailbox)

    def held_rows(self) -> dict[int, tuple[kernel.Queue, int]]:
        """The unsettled deliveries: by the client's tag the queue, and the number that the message has there."""
        rows = zip(self.kernel.outstanding(0, True), self.kernel.unacked(), strict=True)
        return {tag: (row[0], row[1]) for tag, row in rows}

    def recover_unsettled(self, transaction: "FrontTransaction") -> None:
        """The root has taken back everything that it had delivered and that the transaction does not settle, including
        what the client has not received yet."""
        broker = self.client.broker
        mirrors = self.mirrors
        for tag, (queue, _) in self.held_rows().items():
            if transaction.is_settled(tag):
                continue
            if queue in mirrors or self.is_void(queue):
                self.kernel.forget_tag(tag)
            else:
                broker.engine.settle_one(self.kernel, NACK, tag, False, True, broker.now_ms)
        for queue in mirrors:
            queue.purge()

    def part_from_kernel(self) -> None:
        for box in list(self._boxes):
            self._forget(box)
        self._forget_taken()
        self.proofs.end()
        self.earlier.end()
        self.answers.drop()
        super().part_from_kernel()

    # Unprompted actions of the root.

    def closed_above(self, lane: "TunnelLane", fault: ChannelFault, unanswered: "list[Question]") -> None:
        self.lane = None
        self.reached = False
        self.client.drop_call(self)
        # The root never received what the client sent after that, and does not answer it.
        self.answers.drop()
        self._fail(fault)

    def _fail(self, fault: ChannelFault) -> None:
        self.client.broker.faults.close_channel(self, fault)

    def proven_above(self, number: int) -> None:
        self.proofs.proven(number)

    def cancelled_above(self, tag: str) -> None:
        self.close_box(tag)
        if self.client.cancel_notify and not self.closing:
            self.reply(BasicCancel(tag, True))


class FrontFaults(Faults):
    """Faults found on a front: the front closes the channel at the root, too, unless the root closed it."""

    __slots__ = ()

    def close_channel(self, channel: Channel, fault: ChannelFault) -> None:
        assert isinstance(channel, FrontChannel)
        closes = not channel.closing and not channel.client.failed
        super().close_channel(channel, fault)
        if closes:
            channel.client.close_above(channel)
