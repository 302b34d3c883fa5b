"""Applies an entry of the log, as a broker that did not write it does.

After the same entries in the same order two brokers have the same exchanges, queues, bindings, and messages in
durable queues; consumers, private queues and transient messages are not in the log.
"""

from typing import TYPE_CHECKING, assert_never

from pandomq import kernel
from pandomq.broker.commands import TopologyCommand, decode_command
from pandomq.broker.delayed import DelayedMessages
from pandomq.kernel.records import CommandRecord, DequeueRecord, EnqueueRecord, decode_entry

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker


def apply_entry(broker: "Broker", index: int, term: int, entry: bytes) -> None:
    decoded = decode_entry(entry)
    broker.now_ms = decoded.now_ms
    broker.engine.term = term
    for record in decoded.records:
        match record:
            case EnqueueRecord():
                _enqueue(broker, term, record)
            case DequeueRecord():
                known = broker.state.logged.get(record.queue_id)
                if known is not None:
                    known[1].kernel.drop(record.sequence_first, record.count)
            case CommandRecord():
                _command(broker, record.command)
            case _:
                assert_never(record)
    for queue in broker.engine.waiting_for_time:
        broker.timers.watch_messages(queue)
    broker.engine.waiting_for_time.clear()
    broker.held.replayed(index)


def _enqueue(broker: "Broker", term: int, record: EnqueueRecord) -> None:
    message = kernel.Message(record.routing, record.header, record.body)
    logged = broker.state.logged
    # A queue that is not there any more was deleted in the same batch.
    places = [(*logged[queue_id], sequence) for queue_id, sequence in record.places if queue_id in logged]
    broker.engine.restore(message, [(owner.kernel, sequence, term) for _, owner, sequence in places], broker.now_ms)
    for vhost, owner, sequence in places:
        if isinstance(owner, DelayedMessages):
            owner.restored(sequence, message, broker.now_ms)
            broker.timers.watch_delayed(vhost, owner)


def _command(broker: "Broker", encoded: bytes) -> None:
    command = decode_command(encoded)
    broker.change(command)
    if isinstance(command, TopologyCommand):
        # Which exchanges go with their last binding was decided by the broker that wrote the entry; it wrote that
        # down, too.
        broker.state.vhosts[command.vhost].orphans.clear()
