"""Writes the events of messages to a stream in their vhost, in batches (`trace_form`), while the vhost is traced.

Whether it is, and for which part of its messages, is shared state (`PutTracing`). The kernel collects events; this
module writes them: when there are enough of them, or when the first has waited for long. A batch is a message like
others, in the log and on all brokers; it is lost if the root crashes before that. Events without room are dropped, and
the next batch has their number.

Only the root has events: a backup collects nothing, and continues with the next batch when it is root.
"""

from typing import TYPE_CHECKING, Any, Final

from pandomq import kernel
from pandomq.broker.log.commands import Command, DeclareQueue, DeleteVhost, PutTracing
from pandomq.errors import ChannelFault
from pandomq.fieldtable import encode_table
from pandomq.kernel import NEVER_MS
from pandomq.limits import (
    TRACE_BATCH_AGE_MS,
    TRACE_BATCH_BYTES,
    TRACE_BATCHES_UNCOMMITTED_MAX,
    TRACE_HELD_BYTES_MAX,
    TRACE_NOTICES_MAX,
    TRACE_STREAM_BYTES_MAX,
    TRACE_STREAM_SEGMENT_BYTES,
)
from pandomq.properties import Properties, encode_header
from pandomq.trace_form import (
    CONTENT_TYPE,
    TRACE_STREAM,
    Event,
    cluster_event,
    join_batch,
    sample_threshold,
    with_cluster_events,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost

_ARGUMENTS: Final = encode_table(
    {
        "x-queue-type": "stream",
        "x-max-length-bytes": TRACE_STREAM_BYTES_MAX,
        "x-stream-max-segment-size-bytes": TRACE_STREAM_SEGMENT_BYTES,
    }
)
_ROUTING: Final = kernel.routing_of("", TRACE_STREAM)


class TracedVhost:
    __slots__ = ("dropped", "due_ms", "notices", "trace", "uncommitted", "vhost")

    def __init__(self, vhost: "Vhost", trace: kernel.Trace) -> None:
        self.vhost = vhost
        self.trace = trace
        self.notices: list[Event] = []
        self.dropped = 0
        """Events dropped here, beside those that the kernel has dropped."""
        self.due_ms = NEVER_MS
        """The time at which the waiting events are to be written."""
        self.uncommitted = 0

    @property
    def waits(self) -> bool:
        return bool(self.trace.count or self.trace.dropped or self.notices or self.dropped)

    @property
    def may_go(self) -> bool:
        return self.uncommitted < TRACE_BATCHES_UNCOMMITTED_MAX and self.waits


class Tracing:
    __slots__ = ("_broker", "_fraction_us", "_numbers", "traced", "writes")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.writes = True
        """Whether this broker writes the events of brokers. With a log on disk, the owner sets it: only a root does."""
        self._fraction_us = 0
        """The microseconds beyond the milliseconds that the broker gets."""
        self.traced: dict[str, TracedVhost] = {}
        """By the names of their vhosts."""
        self._numbers: dict[str, int] = {}
        """The numbers of the next batches. They stay when a vhost is not traced for a while, and are deleted with
        it."""

    def heard(self, command: Command) -> None:
        """The command was applied."""
        if isinstance(command, PutTracing | DeleteVhost):
            self._follow(command.vhost)
        if isinstance(command, DeleteVhost):
            self._numbers.pop(command.vhost, None)

    def _follow(self, name: str) -> None:
        """The vhost is to be traced, no longer, or in another way; or it was deleted."""
        vhost = self._broker.state.vhosts.get(name)
        sample = 0.0 if vhost is None else vhost.trace_sample
        before = self.traced.pop(name, None)
        trace = None
        if vhost is not None and sample:
            trace = kernel.Trace(self._broker.engine, sample_threshold(sample), TRACE_HELD_BYTES_MAX)
            self.traced[name] = TracedVhost(vhost, trace)
        if vhost is not None and (trace is not None or before is not None):
            vhost.follow_trace(trace)
            for client in self._broker.clients:
                if client.vhost is vhost:
                    client.follow_trace(trace)

    def note(self, event: str, **facts: Any) -> None:
        """An event of the brokers. It may be noted at any time; on a broker that is not root, it is left to others to
        write."""
        if not self.writes:
            return
        notice = cluster_event(self._broker.engine.time_us, event, facts)
        for traced in self.traced.values():
            if len(traced.notices) < TRACE_NOTICES_MAX:
                traced.notices.append(notice)
            else:
                traced.dropped += 1
        # An idle broker has no batch in which this would be noticed.
        self.watch()

    def in_ms(self, now_us: int) -> int:
        """The time in the broker's unit, from a caller with a finer clock; the rest is kept for traced events."""
        now_ms, self._fraction_us = divmod(now_us, 1000)
        return now_ms

    def begin_at(self, now_ms: int) -> None:
        """The next batch is at this time, by the cluster's clock."""
        self._broker.engine.time_us = now_ms * 1000 + self._fraction_us

    def note_time(self, now_ms: int) -> None:
        """Takes the broker's time for events between batches."""
        if self.traced:
            engine = self._broker.engine
            now_us = (now_ms - self._broker.clock_ahead_ms) * 1000 + self._fraction_us
            engine.time_us = max(engine.time_us, now_us)

    def turn(self) -> None:
        """Writes the events that are due, in a batch."""
        now_ms = self._broker.now_ms
        for traced in self.traced.values():
            # Most of the time it is neither.
            if (traced.due_ms <= now_ms or traced.trace.size_bytes >= TRACE_BATCH_BYTES) and traced.may_go:
                self._write(traced)
            if traced.due_ms == NEVER_MS and traced.waits:
                self._watch(traced)

    def watch(self) -> None:
        """Between batches there may have been events: they are written in time."""
        for traced in self.traced.values():
            if traced.due_ms == NEVER_MS and traced.waits:
                self._watch(traced)

    def _watch(self, traced: TracedVhost) -> None:
        traced.due_ms = self._broker.now_ms + TRACE_BATCH_AGE_MS
        self._broker.timers.watch_traces(traced.due_ms)

    def declare(self, vhost: "Vhost") -> "Queue":
        """Returns the stream, made if it is missing. Raises ChannelFault (406) if there is no room for it."""
        broker = self._broker
        queue = vhost.queues.get(TRACE_STREAM)
        if queue is None:
            queue_id = broker.state.next_queue_id
            broker.issue(
                DeclareQueue(vhost.name, TRACE_STREAM, queue_id, True, False, _ARGUMENTS, "", broker.now_ms, False)
            )
            queue = vhost.queues[TRACE_STREAM]
        return queue

    def _write(self, traced: TracedVhost) -> None:
        broker, vhost = self._broker, traced.vhost
        traced.due_ms = NEVER_MS
        count, dropped, columns, queues, routings, consumers = traced.trace.take()
        notices, traced.notices = traced.notices, []
        dropped += traced.dropped
        traced.dropped = 0
        try:
            stream = self.declare(vhost)
        except ChannelFault:
            stream = None
        if stream is None or stream.stream is None:
            # There is no room for it, or its name is taken.
            traced.dropped = dropped + count + len(notices)
            return
        number = self._numbers.get(vhost.name, 0)
        self._numbers[vhost.name] = number + 1
        body = join_batch(
            broker=broker.node_name,
            term=broker.engine.term,
            number=number,
            dropped=dropped,
            sample=vhost.trace_sample,
            count=count + len(notices),
            columns=with_cluster_events(columns, count, notices),
            queues=queues,
            routings=routings,
            consumers=consumers,
            texts=[notice.text for notice in notices],
        )
        header = encode_header(len(body), Properties(content_type=CONTENT_TYPE, delivery_mode=2))
        traced.uncommitted += 1
        broker.engine.enqueue(None, kernel.Message(_ROUTING, header, body), [stream.kernel], 0, broker.now_ms)
        broker.held.call_when_committed(lambda: self._committed(traced))

    def _committed(self, traced: TracedVhost) -> None:
        traced.uncommitted -= 1
        if traced.due_ms != NEVER_MS:
            # It may have waited for this.
            self._broker.timers.watch_traces(traced.due_ms)
