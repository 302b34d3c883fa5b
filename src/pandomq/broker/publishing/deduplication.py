"""Publishes with a producer's name (`x-producer`) and a number (`x-sequence`) have their effect once (D11).

A name belongs to a user in a vhost: the same name of another user is another producer. Numbers rise, and gaps are
allowed. For a publish under a number that is known:

    it had its effect     it is confirmed when its original is committed, and nothing else happens
    it was refused        a queue was full, or it was returned as unroutable: nothing is recorded, and it counts as new
    refused by some       some queues have it, another one refused it: it is refused once more
    it never came         the channel is closed (406) if higher numbers came: a gap is not filled later

Numbers are noted in the entry of the log that holds the publishes. The newest connection that uses a name has it alone:
publishes on older ones close their channel. (Of connections to different brokers the newer one is the one that was
later to use the name.) Dead letters and delayed messages carry the headers of the publish that they come from, and are
no numbered publishes themselves.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from pandomq import kernel
from pandomq.broker.log.commands import NoteSequences, SequenceNotes, encode_command
from pandomq.broker.publishing.named_producers import Key, NamedProducer, SequenceVerdict
from pandomq.errors import precondition_failed
from pandomq.limits import (
    PRODUCER_NAME_BYTES_MAX,
    PRODUCER_SEQUENCE_MAX,
    PRODUCERS_FORGOTTEN_PER_ENTRY_MAX,
    PRODUCERS_PER_CONNECTION_CACHED_MAX,
)

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client

Label: TypeAlias = tuple[NamedProducer, int]
"""The producer of a publish, and its number."""

PLACE_BITS: Final = 62
_LONG_STRING: Final = ord("S")
_TEXT_OFFSET: Final = 5
_SIGNED: Final = frozenset(b"bsIlL")
_UNSIGNED: Final = frozenset(b"Bui")


class Deduplication:
    __slots__ = ("_broker", "_place", "_random", "_touched", "duplicate_count", "fenced_count", "forgotten_count")

    def __init__(self, broker: "Broker", random: "Random") -> None:
        self._broker = broker
        self._random = random
        self._place = 0
        """The base of the identities of connections to this broker, which follow it. Drawn when it is needed."""
        self._touched: list[NamedProducer] = []
        """The producers that changed in this batch."""
        self.duplicate_count = 0
        self.fenced_count = 0
        self.forgotten_count = 0

    def claim(self, client: "Client", message: kernel.Message) -> Label:
        """For a message with SPECIAL_PRODUCER. Raises ChannelFault (406)."""
        raw = message.find_header(b"x-producer")
        number = _number_of(message.find_header(b"x-sequence"))
        assert raw is not None
        known = client.named_producers
        producer = None if known is None else known.get(raw)
        if producer is None or producer.owner != client.identity or producer.forgotten:
            producer = self._own(client, raw)
        return producer, number

    def _own(self, client: "Client", raw: bytes) -> NamedProducer:
        name = _name_of(raw)
        table = self._broker.state.named_producers
        vhost, user = client.vhost.name, client.user
        if not client.identity:
            self._place = self._place or self._random.getrandbits(PLACE_BITS) | 1
            client.identity = self._place + client.number
        former = table.find_former(vhost, user, name)
        if former is not None and former.is_fenced(client.identity):
            self.fenced_count += 1
            raise precondition_failed(
                f"a newer connection publishes as producer '{name}' in vhost '{vhost}': this connection must stop "
                "publishing under that name"
            )
        producer = table.find(vhost, user, name)
        if producer is None or producer.owner != client.identity:
            # If an exception comes before the producer is touched, the log does not get the changes made here.
            self._broker.commands_changed += 1
        if producer is None:
            producer = table.make(vhost, user, name)
            self._touch(producer)
        if producer.owner != client.identity:
            producer.claim(client.identity)
            self._touch(producer)
        if client.named_producers is None or len(client.named_producers) >= PRODUCERS_PER_CONNECTION_CACHED_MAX:
            client.named_producers = {}
        client.named_producers[raw] = producer
        return producer

    def admit(self, channel: "Channel", message: kernel.Message) -> Label | None:
        """None: the publish needs nothing more. Raises ChannelFault (406)."""
        label = producer, number = self.claim(channel.client, message)
        verdict = producer.judge(number)
        if verdict is SequenceVerdict.NEW:
            return label
        _demand_known(producer, number, verdict)
        self.duplicate_count += 1
        self._broker.engine.repeat(channel.kernel)
        if verdict is SequenceVerdict.IN_PART:
            self._broker.engine.refuse(channel.kernel)
        return None

    def settle(self, label: Label, *, accepted: bool, in_part: bool) -> None:
        """Takes the result. The publish is not accepted if a queue refused it, or if it is returned since there is
        none: then it may come again, unless some queue took it."""
        producer, number = label
        self._broker.commands_changed += 1
        if accepted:
            producer.accept(number)
        else:
            producer.refuse(number, in_part=in_part)
        self._touch(producer)

    def _touch(self, producer: NamedProducer) -> None:
        if not producer.touched:
            producer.touched = True
            self._touched.append(producer)

    # Transactions.

    def check(self, channel: "Channel", message: kernel.Message) -> None:
        """Checks a publish in a transaction; the commit will judge it. Raises ChannelFault (406)."""
        producer, number = self.claim(channel.client, message)
        _demand_known(producer, number, producer.judge(number))

    def admit_all(self, channel: "Channel", messages: Sequence[kernel.Message]) -> dict[kernel.Message, Label]:
        """Returns the new ones among the publishes of a commit, to be settled one by one. Raises ChannelFault (406)."""
        ahead: dict[NamedProducer, NamedProducer] = {}
        """Producers, and their state after the earlier publishes of the transaction."""
        new: dict[kernel.Message, Label] = {}
        for message in messages:
            producer, number = self.claim(channel.client, message)
            later = ahead.get(producer)
            if later is None:
                later = ahead[producer] = producer.copy()
            verdict = later.judge(number)
            _demand_known(later, number, verdict)
            if verdict is SequenceVerdict.NEW:
                later.accept(number)
                new[message] = (producer, number)
            else:
                self.duplicate_count += 1
        return new

    # The log.

    def note(self) -> None:
        """To be called at the end of a batch, whose entry holds the changes."""
        if not self._touched:
            return
        state, now_ms = self._broker.state, self._broker.now_ms
        touched, self._touched = self._touched, []
        notes: list[SequenceNotes] = []
        for producer in touched:
            # Its vhost may have been deleted in this very batch.
            if not producer.forgotten:
                notes += producer.take_notes()
                state.named_producers.settle(producer, now_ms)
        command = NoteSequences(now_ms, notes, [], self._forget(now_ms, {producer.user for producer in touched}))
        self._broker.engine.log_command(encode_command(command))

    def _forget(self, now_ms: int, users: Collection[str]) -> list[Key]:
        """Users that publish under too many names, or with too many gaps, lose their own oldest ones; beyond that the
        oldest are forgotten."""
        table, limits = self._broker.state.named_producers, self._broker.limits
        forgotten: list[Key] = []
        for user in sorted(users):
            for _ in range(PRODUCERS_FORGOTTEN_PER_ENTRY_MAX):
                count = table.count_of(user)
                too_many = count > limits.producers_per_user_max > 0
                # A single producer is never too large: it has just published.
                too_large = count > 1 and table.bytes_of(user) > limits.producers_per_user_bytes_max > 0
                if not (too_many or too_large):
                    break
                forgotten.append(table.first_of(user).key)
                table.forget(*forgotten[-1])
        while len(table) and len(forgotten) < PRODUCERS_FORGOTTEN_PER_ENTRY_MAX:
            first = table.first()
            if len(table) <= limits.producers_max and first.noted_ms >= now_ms - limits.producer_age_ms:
                break
            table.forget(*first.key)
            forgotten.append(first.key)
        self.forgotten_count += len(forgotten)
        return forgotten


def label_of(message: kernel.Message) -> tuple[str, int]:
    """Name and number, of a message with SPECIAL_PRODUCER. Raises ChannelFault (406)."""
    raw = message.find_header(b"x-producer")
    assert raw is not None
    return _name_of(raw), _number_of(message.find_header(b"x-sequence"))


def _name_of(raw: bytes) -> str:
    text = raw[_TEXT_OFFSET:]
    if raw[0] != _LONG_STRING or not 0 < len(text) <= PRODUCER_NAME_BYTES_MAX:
        raise precondition_failed(f"invalid x-producer: expected a string of 1 to {PRODUCER_NAME_BYTES_MAX} bytes")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise precondition_failed("invalid x-producer: it is not valid UTF-8") from None


def _number_of(raw: bytes | None) -> int:
    assert raw
    kind = raw[0]
    number = -1
    if kind in _SIGNED or kind in _UNSIGNED:
        number = int.from_bytes(raw[1:], "big", signed=kind in _SIGNED)
    if not 0 <= number <= PRODUCER_SEQUENCE_MAX:
        raise precondition_failed(f"invalid x-sequence: expected an integer from 0 to {PRODUCER_SEQUENCE_MAX}")
    return number


def _demand_known(producer: NamedProducer, number: int, verdict: SequenceVerdict) -> None:
    """Raises ChannelFault (406) for a number that is too low."""
    if verdict is SequenceVerdict.NEVER_SEEN:
        raise precondition_failed(
            f"number {number} of producer '{producer.name}' was not published before, but numbers must increase: "
            f"publish it with a number above {producer.last}"
        )
    if verdict is SequenceVerdict.FORGOTTEN:
        raise precondition_failed(
            f"number {number} of producer '{producer.name}' is older than the remembered numbers: it is not known "
            "whether it was published before"
        )
