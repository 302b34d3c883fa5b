"""A publisher that continues through faults: numbered messages at a steady rate, each repeated until it is confirmed.

It has all addresses. When its connection breaks, or no confirm has come for some time, it dials the others; the first
that accepts it gets the unconfirmed messages once more, in order, and then the rest. So the time without a confirm is
that of the cluster, not of a client's timeout. Messages that were due in the meantime are not sent later.
"""

import contextlib
import socket
import struct
import time
from collections.abc import Sequence

from pandomq.bench.client import wire
from pandomq.bench.client.closing import close_connections
from pandomq.bench.client.confirms import ConfirmCounter
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.url import BrokerUrl
from pandomq.bench.limits import FRAME_BYTES_MAX
from pandomq.bench.loop import Loop
from tools.compare.clusters import limits
from tools.compare.clusters.dialing import Attempt, Dialer
from tools.compare.clusters.timeline import Timeline

NUMBER = struct.Struct(">Q")
"""A body begins with the number of the message."""
_TURN_S = 0.01
_DIALING_TURN_S = 0.002
_RECEIVE_BYTES = 65536


class Line:
    """The connection for publishing; an endpoint that fails without an exception, and reports it afterwards."""

    def __init__(self, connection: socket.socket, url: BrokerUrl, template: bytearray, number_at: int) -> None:
        self.connection = connection
        self.url = url
        self.lost = ""
        self.confirms = ConfirmCounter()
        self.settled: list[int] = []
        """Numbers that were confirmed since this was last read."""
        self.refused: list[int] = []
        self._numbers: list[int] = []
        self._template = template
        self._number_at = number_at
        self._pending = bytearray()

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def wants_write(self) -> bool:
        return bool(self._pending) and not self.lost

    def publish(self, number: int) -> None:
        NUMBER.pack_into(self._template, self._number_at, number)
        self._pending += self._template
        self._numbers.append(number)

    def writable(self) -> None:
        try:
            sent = self.connection.send(self._pending)
        except BlockingIOError:
            return
        except OSError as error:
            self.lost = str(error)
            return
        del self._pending[:sent]

    def readable(self) -> None:
        nacked = self.confirms.nacked
        try:
            data = self.connection.recv(_RECEIVE_BYTES)
            if not data:
                raise wire.BrokerRefused("the broker closed the connection")
            self.confirms.feed(data)
        except BlockingIOError:
            return
        except (OSError, wire.BrokerRefused) as error:
            self.lost = str(error)
            # Octets that were read before the broker's close still count.
        numbers = [self._numbers[tag - 1] for tags in self.confirms.newly_settled for tag in tags]
        self.confirms.newly_settled.clear()
        if self.confirms.nacked != nacked:
            # It is unknown which of them were refused, so none of them counts as confirmed.
            self.refused += numbers
            return
        self.settled += numbers


class EnduringPublisher:
    """`turn` lets it work; between turns nothing happens. Ends with `close`."""

    def __init__(self, urls: Sequence[BrokerUrl], queue: str, timeline: Timeline, first: BrokerUrl) -> None:
        self.queue = queue
        self.timeline = timeline
        self.confirmed: set[int] = set()
        self.resent = 0
        self.refused = 0
        self._loop = Loop()
        self._dialer = Dialer(self._loop, urls)
        body = bytes(limits.FAULT_BODY_BYTES)
        properties = wire.MessageProperties(persistent=True)
        self._template = bytearray(wire.publish(CHANNEL, "", queue, properties, body, FRAME_BYTES_MAX))
        self._number_at = len(self._template) - 1 - len(body)
        self._line: Line | None = self._first_line(first)
        self._loop.add(self._line)
        self._unsettled: dict[int, None] = {}
        self._again: list[int] = []
        """Refused numbers, to be published once more."""
        self._next = 0
        self._interval_ns = 1_000_000_000 // limits.FAULT_RATE
        self._due_ns = time.monotonic_ns()
        self._patience_ns = limits.SILENCE_NS
        self._waiting_since_ns = self._due_ns
        self._stopped = False

    def _first_line(self, url: BrokerUrl) -> Line:
        session = LoadSession(url)
        session.call(wire.confirm_select(CHANNEL), wire.CONFIRM_SELECT_OK)
        return Line(session.release()[0], url, self._template, self._number_at)

    @property
    def settled(self) -> bool:
        return not self._unsettled

    @property
    def published(self) -> int:
        """Different messages so far."""
        return self._next

    def turn(self) -> None:
        now_ns = time.monotonic_ns()
        line = self._line
        if line is not None and line.lost:
            self._lose(line, now_ns)
            line = None
        silent = bool(self._unsettled) and now_ns - self._waiting_since_ns > self._patience_ns
        if line is None or silent:
            found = self._dialer.turn(now_ns, line.url if line is not None else None)
            if found is not None:
                self._move(found, now_ns)
        else:
            self._dialer.give_up()
        self._publish_due(now_ns)
        self._loop.turn(self._idle_s(now_ns))
        if self._line is not None:
            self._take_settled(self._line)

    def _idle_s(self, now_ns: int) -> float:
        """Seconds until the next message is due, if one may be sent then."""
        if self._line is None:
            return _DIALING_TURN_S
        if self._stopped or len(self._unsettled) >= limits.FAULT_WINDOW:
            return _TURN_S
        return min(_TURN_S, max(0.0, (self._due_ns - now_ns) / 1e9))

    def _lose(self, line: Line, now_ns: int) -> None:
        self.timeline.tell(now_ns, f"{line.url.host}:{line.url.port} disconnected: {line.lost}")
        self._end_line(line)
        self._line = None

    def _end_line(self, line: Line) -> None:
        self._take_settled(line)
        # The next line gets all unconfirmed messages anyway.
        self._again.clear()
        self._loop.remove(line)
        with contextlib.suppress(OSError):
            line.connection.close()

    def _move(self, found: Attempt, now_ns: int) -> None:
        """Switches to the broker that was found; unconfirmed messages are published there again."""
        if self._line is not None:
            self.timeline.tell(now_ns, f"gave up connecting to {self._line.url.host}:{self._line.url.port}")
            self._end_line(self._line)
        self.timeline.tell(now_ns, f"connected to {found.url.host}:{found.url.port}")
        self._line = Line(found.handshake.connection, found.url, self._template, self._number_at)
        self._loop.add(self._line)
        for number in self._unsettled:
            self._line.publish(number)
        self.resent += len(self._unsettled)
        self._waiting_since_ns = now_ns
        self._patience_ns = max(2 * self._patience_ns, limits.PATIENCE_NS)
        self._loop.refresh(self._line)

    def _publish_due(self, now_ns: int) -> None:
        line = self._line
        if line is None:
            self._due_ns = max(self._due_ns, now_ns)
            return
        if not self._unsettled:
            self._waiting_since_ns = now_ns
        while self._due_ns <= now_ns:
            if self._again:
                line.publish(self._again.pop())
            elif self._stopped or len(self._unsettled) >= limits.FAULT_WINDOW:
                self._due_ns = now_ns
                break
            else:
                line.publish(self._next)
                self._unsettled[self._next] = None
                self._next += 1
            self._due_ns += self._interval_ns
        if line.wants_write:
            line.writable()
        self._loop.refresh(line)

    def _take_settled(self, line: Line) -> None:
        if line.refused:
            self.refused += len(line.refused)
            self._again += line.refused
            line.refused.clear()
        fresh = [number for number in line.settled if number in self._unsettled]
        line.settled.clear()
        for number in fresh:
            del self._unsettled[number]
        self.confirmed.update(fresh)
        if fresh:
            self._waiting_since_ns = time.monotonic_ns()
            self._patience_ns = limits.SILENCE_NS
            self.timeline.confirm(self._waiting_since_ns, len(fresh))

    def stop(self) -> None:
        """Publishes nothing new; unconfirmed messages are still repeated."""
        self._stopped = True

    def close(self) -> None:
        self._dialer.give_up()
        self._loop.close()
        if self._line is not None:
            close_connections([self._line.connection])
