"""Which publishes and commits of other brokers' clients have had their effect, so that none has it twice (D11, R29).

A front names a *producer* for each channel of its clients, when it opens the channel here, and repeats the name when it
opens it anew: after its connection broke, or at another root. In confirm mode the publishes of a producer are numbered,
in tx mode its commits. Each log entry that holds some of them also holds the last number of each producer; so a broker
with the log knows them, and sends them in channel.open-ok. A publish that comes again under a known number is
confirmed, and enters no queue but outlets: whether a copy got there before the last root crashed, this root cannot
know, but the brokers behind them remember numbers, too. A publish that comes again and is not known may have been
delivered by a root that crashed before it was safe: it is marked `redelivered` from the first time on.

The same producer on two connections means that the older one is dead, or nearly so: it is closed, before its remaining
inputs change what was answered.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker.limits import TableLimits
from pandomq.broker.log.commands import NoteProducers, encode_command
from pandomq.errors import connection_forced, syntax_error

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel

PRODUCER_ID_MAX = 2**64 - 1
DEFAULTS: Final = TableLimits()
GAP_DIVISOR: Final = 4
"""A part of the age at which producers are forgotten: a longer time without any publish does not count."""


class ProducerTable:
    """The last number of each. A producer that was silent for long is forgotten, and so is the first one when there are
    too many: the same ones everywhere, since it depends only on what was noted.

    A long time in which no producer at all was noted does not count. Then there was no root, or all brokers were
    suspended, and clients that have waited for a confirm meanwhile will send their publishes again."""

    __slots__ = ("_limits", "_rows")

    def __init__(self, limits: TableLimits = DEFAULTS) -> None:
        self._limits = limits
        self._rows: OrderedDict[int, tuple[int, int]] = OrderedDict()
        """The number, and when it was noted; in the order of that. (A plain dict is slow to find its first.)"""

    def note(self, producer: int, number: int, now_ms: int) -> None:
        rows, limits = self._rows, self._limits
        self._pass_over_gap(now_ms)
        self.reinstate(producer, number, now_ms)
        oldest_ms = now_ms - limits.relayed_producer_age_ms
        while len(rows) > limits.relayed_producers_max or self._first_ms < oldest_ms:
            rows.popitem(last=False)

    def _pass_over_gap(self, now_ms: int) -> None:
        rows = self._rows
        gap_ms = now_ms - next(reversed(rows.values()))[1] if rows else 0
        if gap_ms > self._limits.relayed_producer_age_ms // GAP_DIVISOR:
            for producer, (number, noted_ms) in rows.items():
                rows[producer] = (number, noted_ms + gap_ms)

    def reinstate(self, producer: int, number: int, noted_ms: int) -> None:
        """Takes rows as `rows` returns them, in that order."""
        self._rows[producer] = (number, noted_ms)
        self._rows.move_to_end(producer)

    @property
    def _first_ms(self) -> int:
        return next(iter(self._rows.values()))[1]

    def last_number(self, producer: int) -> int:
        """0 if it is not known."""
        return self._rows.get(producer, (0, 0))[0]

    def rows(self) -> list[tuple[int, int, int]]:
        """Producer, number, time; in order, so that `reinstate` of each makes the same table."""
        return [(producer, number, now_ms) for producer, (number, now_ms) in self._rows.items()]

    def __len__(self) -> int:
        return len(self._rows)


class Numbering:
    """The numbering of one channel."""

    __slots__ = ("count", "known", "producer", "sent")

    def __init__(self, producer: int, count: int, known: int, sent: int) -> None:
        self.producer = producer
        self.count = count
        """Publishes or commits before the next one."""
        self.known = known
        """Publishes or commits up to this number have had their effect."""
        self.sent = sent
        """Publishes or commits up to this number may have been sent to another root."""


class Producers:
    """The connected producers, and facts that the log does not have: publishes that went to transient queues only are
    known as long as this broker is root."""

    __slots__ = ("_broker", "_channels", "_handled")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._channels: dict[int, Channel] = {}
        self._handled = ProducerTable(broker.limits.tables)

    def open(self, channel: "Channel", said: str) -> int:
        """Takes from channel.open a producer, its count, and up to which number it has sent before. The answer is valid
        once everything that this broker has sealed is committed. Raises ConnectionFault (502)."""
        name, _, numbers = said.partition(":")
        count, _, sent = numbers.partition(":")
        numeric = name.isdecimal() and count.isdecimal() and (sent or "0").isdecimal()
        if not (numeric and 0 < int(name) <= PRODUCER_ID_MAX):
            raise syntax_error(f"'{said}' is not a valid producer: expected ID:COUNT or ID:COUNT:SENT, all numbers")
        producer = int(name)
        self._end_older(producer, channel)
        logged = self._broker.state.producers.last_number(producer)
        known = max(logged, self._handled.last_number(producer))
        channel.numbering = Numbering(producer, int(count), known, int(sent or 0))
        self._channels[producer] = channel
        return known

    def _end_older(self, producer: int, channel: "Channel") -> None:
        older = self._channels.get(producer)
        if older is None:
            return
        if older.client is channel.client:
            raise syntax_error(f"producer {producer} already has a channel")
        self._broker.commands_changed += 1
        self._broker.faults.close_client(older.client, connection_forced("a newer connection has replaced this one"))
        self._broker.faults.finish()

    def number_publishes(self, channel: "Channel") -> None:
        """The channel has just entered confirm mode."""
        numbering = channel.numbering
        assert numbering is not None
        channel.kernel.producer = numbering.producer
        channel.kernel.repeats_through = max(numbering.known, numbering.sent)
        channel.kernel.set_published(numbering.count)

    def committed(self, channel: "Channel") -> None:
        """A transaction of the channel is in this batch."""
        numbering = channel.numbering
        assert numbering is not None
        numbering.count += 1
        self._log([(numbering.producer, numbering.count)])

    def note(self, channels: list[kernel.Channel]) -> None:
        """The batch's entry holds publishes of these channels. The list starts anew."""
        if channels:
            self._log([(channel.producer, channel.published_count) for channel in channels])
            channels.clear()

    def _log(self, last: list[tuple[int, int]]) -> None:
        """With this batch; no client waits for it, and no front gets it."""
        command = NoteProducers(self._broker.now_ms, last)
        encoded = encode_command(command)
        self._broker.commands_changed += 1
        self._broker.state.apply(command)
        self._broker.engine.log_command(encoded)

    def left(self, channel: "Channel") -> None:
        """The channel is about to be closed."""
        numbering = channel.numbering
        if numbering is None or self._channels.get(numbering.producer) is not channel:
            return
        del self._channels[numbering.producer]
        if channel.kernel.mode == kernel.CONFIRM:
            self._handled.note(numbering.producer, channel.kernel.published_count, self._broker.now_ms)
