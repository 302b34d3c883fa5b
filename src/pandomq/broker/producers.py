"""Which publishes and commits of other brokers' clients have had their effect, so that none has it twice (D11, R29).

A broker that stands for a client names a *producer* for each channel, when it opens it here, and repeats the name when
it opens it anew: after its connection broke, or at another root. In confirm mode the publishes of a producer are
numbered, in tx mode its commits. Each log entry that holds some of them also holds the last number of each producer;
so whoever has the log knows, and says so in channel.open-ok. What comes again under a number that is known is
confirmed, and enters no queue but outlets: whether a copy got there before the last root died, nobody here can tell,
but the brokers behind them remember numbers, too. What comes again and is not known may have been delivered by a root
that died before it was safe: it says `redelivered` from the first time on.

The same producer on two connections means that the older one is dead, or as good as dead: it is closed, before what it
may still have to say changes what was answered.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.commands import NoteProducers, encode_command
from pandomq.errors import connection_forced, syntax_error
from pandomq.limits import PRODUCER_REMEMBERED_MS, PRODUCERS_REMEMBERED_MAX

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel

PRODUCER_ID_MAX = 2**64 - 1


class ProducerTable:
    """The last number of each. Who was not heard of for long is forgotten, and so is the first when there are too many:
    the same ones everywhere, since it depends on nothing but what was noted."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: OrderedDict[int, tuple[int, int]] = OrderedDict()
        """Number, and when it was noted; in the order of that. (A plain dict is slow to find its first.)"""

    def note(self, producer: int, number: int, now_ms: int) -> None:
        rows = self._rows
        rows[producer] = (number, now_ms)
        rows.move_to_end(producer)
        while len(rows) > PRODUCERS_REMEMBERED_MAX or self._first_ms < now_ms - PRODUCER_REMEMBERED_MS:
            rows.popitem(last=False)

    @property
    def _first_ms(self) -> int:
        return next(iter(self._rows.values()))[1]

    def last_number(self, producer: int) -> int:
        """0 if nothing is known of it."""
        return self._rows.get(producer, (0, 0))[0]

    def rows(self) -> list[tuple[int, int, int]]:
        """Producer, number, time; in order, so that `note` of each makes the same table."""
        return [(producer, number, now_ms) for producer, (number, now_ms) in self._rows.items()]

    def __len__(self) -> int:
        return len(self._rows)


class Numbering:
    """Of one channel."""

    __slots__ = ("count", "known", "producer", "sent")

    def __init__(self, producer: int, count: int, known: int, sent: int) -> None:
        self.producer = producer
        self.count = count
        """Publishes or commits before the next one."""
        self.known = known
        """Up to this number they have had their effect."""
        self.sent = sent
        """Up to this number they may have been sent to another root."""


class Producers:
    """Who is connected now, and what the log does not say: publishes that went to passing queues only are known as long
    as this broker is root."""

    __slots__ = ("_broker", "_channels", "_handled")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._channels: dict[int, Channel] = {}
        self._handled = ProducerTable()

    def open(self, channel: "Channel", said: str) -> int:
        """What channel.open says of a producer, of its count, and up to which number it has sent before. The answer
        holds once all that this broker has sealed is committed. Raises ConnectionFault (502)."""
        name, _, numbers = said.partition(":")
        count, _, sent = numbers.partition(":")
        numeric = name.isdecimal() and count.isdecimal() and (sent or "0").isdecimal()
        if not (numeric and 0 < int(name) <= PRODUCER_ID_MAX):
            raise syntax_error(f"'{said}' does not name a producer")
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
            raise syntax_error(f"producer {producer} has a channel already")
        self._broker.faults.close_client(older.client, connection_forced("another connection takes its place"))
        self._broker.faults.finish()

    def number_publishes(self, channel: "Channel") -> None:
        """The channel has just become one with confirms."""
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
        """The batch's entry holds publishes of these. The list starts anew."""
        if channels:
            self._log([(channel.producer, channel.published_count) for channel in channels])
            channels.clear()

    def _log(self, last: list[tuple[int, int]]) -> None:
        """With this batch; nobody waits for it, and nobody outside hears of it."""
        command = NoteProducers(self._broker.now_ms, last)
        self._broker.state.apply(command)
        self._broker.engine.log_command(encode_command(command))

    def left(self, channel: "Channel") -> None:
        """It is about to be closed."""
        numbering = channel.numbering
        if numbering is None or self._channels.get(numbering.producer) is not channel:
            return
        del self._channels[numbering.producer]
        if channel.kernel.mode == kernel.CONFIRM:
            self._handled.note(numbering.producer, channel.kernel.published_count, self._broker.now_ms)
