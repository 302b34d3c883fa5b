"""Class basic on a front, except for the methods that come in runs."""

from typing import TYPE_CHECKING

import msgspec

from pandomq.broker.methods import on_basic
from pandomq.broker.publishing import reply_to
from pandomq.cluster.proxy.front_channel import ignore_reply
from pandomq.cluster.proxy.mailbox import Mailbox, with_lasting_time
from pandomq.cluster.proxy.methods.on_queue import private_queue
from pandomq.cluster.proxy.private import private_queues
from pandomq.errors import not_allowed, not_implemented
from pandomq.kernel import NEVER_MS
from pandomq.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicGetOk,
    BasicQos,
    BasicRecover,
    BasicRecoverAsync,
    BasicRecoverOk,
)

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.methods import Method


def qos(front: "Front", channel: "FrontChannel", method: BasicQos) -> None:
    """Sets the prefetch here for private queues and for the channel's total, and at the root for shared queues."""
    on_basic.qos(front, channel, method)
    if channel.lane is not None:
        channel.lane.ask(method, ignore_reply)


def consume(front: "Front", channel: "FrontChannel", method: BasicConsume) -> None:
    name = channel.queue_name(method.queue)
    tag = method.consumer_tag
    if tag in channel.consumers:
        raise not_allowed(f"attempt to reuse consumer tag '{tag}'")
    tag = tag or front.names.consumer_tag()
    if name == reply_to.PSEUDO_QUEUE:
        private_queues.consume_replies(front, channel, method, tag)
        return
    if private_queue(channel, name) is not None:
        on_basic.consume(front, channel, method)
        return
    # The front always requests an answer from the root, and sends a tag that the next root can use as well.
    question = msgspec.structs.replace(method, queue=name, consumer_tag=tag, no_wait=False)
    question = with_lasting_time(question, front.now_ms)

    def answered(answer: "Method", _message: "kernel.Message | None") -> None:
        box = Mailbox(channel, name, question)
        box.begun(answer)
        channel.open_box(box, tag)
        if not method.no_wait:
            channel.reply(BasicConsumeOk(tag))

    channel.ask(question, answered)


def cancel(front: "Front", channel: "FrontChannel", method: BasicCancel) -> None:
    tag = method.consumer_tag
    consumer = channel.consumers.get(tag)
    if consumer is None or not isinstance(consumer.queue.owner, Mailbox):
        on_basic.cancel(front, channel, method)
        return

    def answered(_answer: "Method", _message: "kernel.Message | None") -> None:
        channel.close_box(tag)
        if not method.no_wait:
            channel.reply(BasicCancelOk(tag))

    channel.ask(BasicCancel(tag), answered)


def get(front: "Front", channel: "FrontChannel", method: BasicGet) -> None:
    name = channel.queue_name(method.queue)
    if private_queue(channel, name) is not None:
        on_basic.get(front, channel, method)
        return

    def answered(answer: "Method", message: "kernel.Message | None") -> None:
        if not isinstance(answer, BasicGetOk):
            channel.reply(answer)
            return
        assert message is not None and channel.lane is not None
        box = channel.box_of_taken(channel.lane.taken_from)
        box.kernel.reinstate(message, answer.delivery_tag, 0, NEVER_MS, 0, answer.redelivered)
        taken = box.kernel.take(channel.kernel, method.no_ack, front.now_ms)
        assert taken is not None
        reply = msgspec.structs.replace(answer, delivery_tag=taken[0])
        channel.reply_with_content(reply, message)

    channel.ask(msgspec.structs.replace(method, queue=name), answered)


def recover(front: "Front", channel: "FrontChannel", method: BasicRecover) -> None:
    _recover(front, channel, method)


def recover_async(front: "Front", channel: "FrontChannel", method: BasicRecoverAsync) -> None:
    _recover(front, channel, method)


def _recover(front: "Front", channel: "FrontChannel", method: BasicRecover | BasicRecoverAsync) -> None:
    """Each message goes back to where it came from. In a transaction the front must request this from the root by other
    means than settlements: those would wait for the commit."""
    if not method.requeue:
        raise not_implemented("requeue=false")
    answers = isinstance(method, BasicRecover)
    if channel.transaction is None or channel.lane is None:
        # Without a connection to the root only the deliveries of an earlier root need to be recovered.
        channel.kernel.recover(front.now_ms)
        if answers:
            channel.reply(BasicRecoverOk())
        return
    transaction = channel.transaction
    if any(box.reads_stream for box in channel.consuming()):
        # The root would not deliver again what the client has not received.
        raise not_implemented("basic.recover in a transaction on a channel that reads a stream")

    def answered(_answer: "Method", _message: "kernel.Message | None") -> None:
        channel.recover_unsettled(transaction)
        if answers:
            channel.reply(BasicRecoverOk())

    if channel.reach() is not None:
        transaction.tell_settlements(channel)
        channel.ask(BasicRecover(True), answered)
