"""Handles deadlines that have come. Of several that come together, one may have removed the subject of the next."""

from typing import TYPE_CHECKING, assert_never

from pandomq import kernel
from pandomq.broker.publishing.publishing import enqueue, route
from pandomq.broker.queues.consumers import renew_time_limits
from pandomq.broker.queues.outlets import apart
from pandomq.broker.queues.removal import delete_queue
from pandomq.broker.timers import TimerKind
from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.publishing.delayed import DelayedMessages
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost


def meet_deadlines(broker: "Broker", now_ms: int) -> None:
    for kind, subject in broker.timers.take_due(now_ms):
        match kind:
            case TimerKind.MESSAGES:
                _expire_messages(broker, subject, now_ms)
            case TimerKind.QUEUE:
                _expire_queue(broker, subject, now_ms)
            case TimerKind.DELAYED:
                vhost, waiting = subject
                _send_delayed(broker, vhost, waiting, now_ms)
            case TimerKind.ACKS:
                _close_late_channels(broker, now_ms)
            case TimerKind.RECEIPTS:
                broker.receipts.overdue(now_ms)
            case TimerKind.LEASES:
                broker.leases.expiry.overdue(now_ms)
            case TimerKind.TRACES:
                # Due traces are written at the end of the batch.
                pass
            case _:
                assert_never(kind)


def watch_changed(broker: "Broker") -> None:
    """Sets timers for new queues, and for those that follow another policy: their time settings count from now."""
    queues, broker.state.changed_queues = broker.state.changed_queues, []
    for queue in queues:
        if queue.settings.expires_ms > 0:
            queue.used_ms = broker.now_ms
            broker.timers.watch_queue(queue, broker.now_ms + queue.settings.expires_ms)
        else:
            broker.timers.forget_queue(queue)
        renew_time_limits(broker, queue)


def _expire_messages(broker: "Broker", queue: "kernel.Queue", now_ms: int) -> None:
    queue.timer_armed = False
    if not queue.deleted:
        queue.expire(now_ms)
        broker.timers.watch_messages(queue)


def _expire_queue(broker: "Broker", queue: "Queue", now_ms: int) -> None:
    if queue.kernel.deleted:
        return
    kept = broker.staging.keeps(queue) or broker.leases.leased_count(queue)
    used_ms = now_ms if queue.kernel.consumer_count or kept else queue.used_ms
    due_ms = used_ms + queue.settings.expires_ms
    if due_ms <= now_ms:
        delete_queue(broker, queue)
    else:
        broker.timers.watch_queue(queue, due_ms)


def _send_delayed(broker: "Broker", vhost: "Vhost", waiting: "DelayedMessages", now_ms: int) -> None:
    if waiting.kernel.deleted:
        return
    exchange = vhost.router.exchanges[waiting.exchange_name]
    for message in waiting.due(now_ms):
        queues = route(vhost, exchange, message)
        if message.exchange == exchange.name:
            enqueue(broker, None, vhost, message, queues)
            continue
        # The message came here through another exchange. Other brokers route the output of their outlets from the
        # exchange that it names; from that other one they would find queues that had their copies when it was
        # published.
        here, outlets = apart(queues)
        enqueue(broker, None, vhost, message, here)
        if outlets:
            routing = kernel.routing_of(exchange.name, message.routing_key)
            enqueue(broker, None, vhost, kernel.Message(routing, message.header, message.body), outlets)
    broker.timers.watch_delayed(vhost, waiting)


def _close_late_channels(broker: "Broker", now_ms: int) -> None:
    for channel in broker.timers.late_channels(list(broker.clients), now_ms):
        fault = precondition_failed(
            f"delivery acknowledgement on channel {channel.number} timed out. Timeout value used: "
            f"{channel.timeout_ms} ms. This timeout value can be configured, see consumers doc guide to learn more"
        )
        broker.faults.close_channel(channel, fault)
    broker.faults.finish()
