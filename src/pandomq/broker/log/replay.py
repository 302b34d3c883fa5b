"""Applies an entry of the log, on a broker that did not write it.

After the same entries in the same order two brokers have the same exchanges, queues, bindings, and messages in durable
queues; consumers, private queues and transient messages are not in the log.
"""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.log.commands import Command, MessageCommand, TopologyCommand, decode_command
from pandomq.broker.publishing.delayed import DelayedMessages

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker


def apply_entry(broker: "Broker", index: int, term: int, entry: bytes) -> None:
    if term > broker.engine.term:
        broker.state.term_starts.begin(broker.state.next_sequences(), term)
    broker.engine.term = term
    broker.engine.replay(entry, term, Replay(broker))
    broker.state.attempts.replayed()
    broker.streams.turn()
    for queue in broker.engine.waiting_for_time:
        broker.timers.watch_messages(queue)
    broker.engine.waiting_for_time.clear()
    broker.held.replayed(index)


class Replay:
    """The kernel's callbacks for one entry; kernel.ReplayHooks."""

    __slots__ = ("_broker",)

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def began(self, now_ms: int) -> None:
        self._broker.now_ms = now_ms

    def find_queue(self, queue_id: int) -> kernel.Queue | None:
        # A queue that is not there any more was deleted in the same batch.
        known = self._broker.state.logged.get(queue_id)
        return None if known is None else known[1].kernel

    def restored(self, queue: kernel.Queue, sequence: int, message: kernel.Message) -> None:
        vhost, owner = self._broker.state.logged[queue.queue_id]
        assert isinstance(owner, DelayedMessages)
        owner.restored(sequence, message, self._broker.now_ms)
        self._broker.timers.watch_delayed(vhost, owner)

    def command(self, command: bytes) -> None:
        change = apply_command(self._broker, command)
        if self._broker.on_command is not None and not isinstance(change, MessageCommand):
            self._broker.on_command(command)


def apply_command(broker: "Broker", command: bytes) -> Command:
    """Applies a command of another broker."""
    change = decode_command(command)
    broker.change(change)
    if isinstance(change, TopologyCommand):
        # The broker that wrote the entry decided which exchanges are deleted with their last binding, and logged that,
        # too.
        broker.state.vhosts[change.vhost].orphans.clear()
    return change
