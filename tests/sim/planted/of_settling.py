"""Bugs of settlements on one channel, of deliveries and of basic.get: late, for several messages, after a cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.broker import Broker
from pandomq.broker.log.places import PLACE, Settling
from pandomq.broker.methods import on_basic
from pandomq.broker.methods.on_basic import cancel
from pandomq.broker.publishing.transactions import Transaction
from pandomq.cluster.proxy.front_channel import FrontChannel
from pandomq.kernel.constants import NACK
from pandomq.methods import BasicCancel
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.channel import Channel
    from pandomq.broker.queues.queue import Queue

NODES: Final = 3


def _take_back_cancelled(patch: Patch) -> None:
    def hasty(broker: Broker, channel: Channel, method: BasicCancel) -> None:
        consumer = channel.consumers.get(method.consumer_tag)
        tags = zip(channel.kernel.outstanding(0, True), channel.kernel.unacked(), strict=True)
        held = [tag for tag, row in tags if consumer is not None and row[0] is consumer.queue]
        cancel(broker, channel, method)
        for tag in held:
            broker.engine.settle_one(channel.kernel, NACK, tag, False, True, broker.now_ms)

    patch.set(Broker, "handlers", {**Broker.handlers, BasicCancel: hasty})


def _settle_one_queue(patch: Patch) -> None:
    settle = Transaction.settle

    def narrow(
        transaction: Transaction, channel: kernel.Channel, method_id: int, tag: int, multiple: bool, requeue: bool
    ) -> None:
        tags = channel.outstanding(0, True)
        if not multiple or tag not in tags:
            settle(transaction, channel, method_id, tag, multiple, requeue)
            return
        queues = dict(zip(tags, (row[0] for row in channel.unacked()), strict=True))
        for one in tags:
            if one <= tag and queues[one] is queues[tag] and not transaction.is_settled(one):
                settle(transaction, channel, method_id, one, False, requeue)

    patch.set(Transaction, "settle", narrow)


def _find_nobody(patch: Patch) -> None:
    patch.set(Settling, "_find_unacked", lambda settling, queue: {})


def _name_next(patch: Patch) -> None:
    def next_one(channel: Channel, queue: Queue, tag: int) -> bytes:
        sequence, term = channel.kernel.place_of(tag)
        return PLACE.pack(queue.kernel.queue_id, sequence + 1, term)

    patch.set(on_basic, "place_of", next_one)


def _settle_taken_here(patch: Patch) -> None:
    patch.set(FrontChannel, "mirrors", property(lambda channel: {box.kernel for box in channel._boxes}))


PLANTED_BUGS: Final = (
    PlantedBug(
        "cancel-takes-back",
        "A `basic.cancel` requeues the unacknowledged messages of the consumer.",
        _take_back_cancelled,
    ),
    PlantedBug(
        "multiple-of-one-queue", "An ack with `multiple` in a transaction affects one queue only.", _settle_one_queue
    ),
    PlantedBug(
        "late-ack-finds-nobody",
        "A late ack does not settle a message that another consumer has received meanwhile.",
        _find_nobody,
        NODES,
    ),
    PlantedBug(
        "get-names-next", "A late ack of a message from `basic.get` settles the message behind it.", _name_next, NODES
    ),
    PlantedBug(
        "taken-settled-here",
        "A front does not send acks of messages from `basic.get` with a commit.",
        _settle_taken_here,
        NODES,
    ),
)
