"""Bugs of the distribution of a queue's messages: the single active consumer, and prefetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.broker import Broker
from pandomq.broker.methods import on_basic
from pandomq.broker.queues import consumers
from pandomq.broker.queues.queue import Queue
from pandomq.cluster.proxy.front import Front
from pandomq.methods import BasicCancel, BasicCancelOk, BasicQos
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from typing import Any

    from pandomq import kernel
    from pandomq.broker.channel import Channel
    from pandomq.broker.log.commands import Command
    from pandomq.cluster.proxy.front_channel import FrontChannel


def _single_where_declared(patch: Patch) -> None:
    issue, make = Broker.issue, Queue.__init__
    issuing: list[Command] = []

    def noted(broker: Broker, command: Command) -> None:
        issuing.append(command)
        try:
            issue(broker, command)
        finally:
            issuing.pop()

    def forgetful(queue: Queue, *arguments: Any, **options: Any) -> None:
        make(queue, *arguments, **options)
        if not issuing and queue.settings.single_active:
            queue.settings = msgspec.structs.replace(queue.settings, single_active=False)
            queue.settings.configure(queue.kernel, local=queue.is_local)

    patch.set(Broker, "issue", noted)
    patch.set(Queue, "__init__", forgetful)


def _stay_when_cancelled(patch: Patch) -> None:
    def cancel(broker: Broker, channel: Channel, method: BasicCancel) -> None:
        channel.pop_consumer(method.consumer_tag)
        channel.reply(BasicCancelOk(method.consumer_tag))

    patch.set(Broker, "handlers", {**Broker.handlers, BasicCancel: cancel})


def _cancel_here(patch: Patch) -> None:
    def cancel(front: Front, channel: FrontChannel, method: BasicCancel) -> None:
        channel.close_box(method.consumer_tag)
        channel.reply(BasicCancelOk(method.consumer_tag))

    patch.set(Front, "handlers", {**Front.handlers, BasicCancel: cancel})


def _one_more(patch: Patch) -> None:
    add = consumers.add_consumer

    def generous(broker: Broker, channel: Channel, queue: Queue, tag: str, **options: Any) -> kernel.Consumer:
        asked = channel.prefetch_count
        channel.prefetch_count = asked and asked + 1
        try:
            return add(broker, channel, queue, tag, **options)
        finally:
            channel.prefetch_count = asked

    patch.set(on_basic, "add_consumer", generous)


def _for_each(patch: Patch) -> None:
    def qos(broker: Broker, channel: Channel, method: BasicQos) -> None:
        on_basic.qos(broker, channel, msgspec.structs.replace(method, global_=False))

    patch.set(Broker, "handlers", {**Broker.handlers, BasicQos: qos})


PLANTED_BUGS: Final = (
    PlantedBug(
        "single-where-declared",
        "After a restart a single-active-consumer queue has several active consumers.",
        _single_where_declared,
    ),
    PlantedBug("cancelled-stays", "A cancelled consumer remains the active one.", _stay_when_cancelled),
    PlantedBug(
        "cancelled-at-front", "A front does not forward the cancellation of a consumer to the root.", _cancel_here, 3
    ),
    PlantedBug("prefetch-one-more", "A consumer gets one message more than its prefetch.", _one_more),
    PlantedBug(
        "prefetch-for-each", "A prefetch for all consumers of a channel applies to each of them separately.", _for_each
    ),
)
