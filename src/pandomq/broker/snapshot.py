"""All that a broker must know after a restart, as it is at one moment: shared state as commands, and live messages.

`Snapshot` notes it at once, by reference: messages never change. Encoding takes its time, in pieces of bounded size,
while the broker goes on. Messages are those that the log holds: persistent ones in durable queues, ready or unacked,
and those of transactions that wait for their commit. A message in several queues is written once.

    stream    records, each a length u32 and msgpack: a head, commands, marks of queues, messages
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq import kernel
from pandomq.broker.commands import encode_command
from pandomq.broker.delayed import DelayedMessages, due_ms
from pandomq.broker.state_commands import commands_of

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.queue import Queue

VERSION: Final = 1
LENGTH: Final = struct.Struct("<I")

Place = tuple[int, int, int, int, int, bool]
"""Queue id, sequence, term, deadline (when it is due, of a delayed message), delivery count, redelivered."""


class Head(msgspec.Struct, frozen=True, array_like=True, tag="head"):
    version: int
    now_ms: int
    next_queue_id: int
    had_users: bool
    exact: bool
    """Nothing was delivered after this: flags and counts are as clients know them."""


class CommandPart(msgspec.Struct, frozen=True, array_like=True, tag="command"):
    command: bytes


class QueueMark(msgspec.Struct, frozen=True, array_like=True, tag="queue"):
    queue_id: int
    next_sequence: int


class KeptMessage(msgspec.Struct, frozen=True, array_like=True, tag="message"):
    places: list[Place]
    routing: bytes
    header: bytes
    body: bytes


Part = Head | CommandPart | QueueMark | KeptMessage

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Part)


class Snapshot:
    """To be made while the broker is `at_rest`."""

    def __init__(self, broker: "Broker", *, exact: bool) -> None:
        state = broker.state
        self._parts: list[Part] = [Head(VERSION, broker.now_ms, state.next_queue_id, state.had_users, exact)]
        self._parts += [CommandPart(encode_command(command)) for command in commands_of(state)]
        self._parts += [
            QueueMark(queue_id, owner.kernel.next_sequence) for queue_id, (_, owner) in state.logged.items()
        ]
        self._messages: dict[int, tuple[kernel.Message, list[Place]]] = {}
        self._note_ready(broker)
        self._note_unacked(broker)
        self._note_awaited(broker)

    def pieces(self, size_bytes: int) -> Iterator[bytes]:
        """The stream, cut where this size is reached, so that no piece is larger; messages are let go on the way."""
        waiting = bytearray()
        for part in self._all_parts():
            encoded = _ENCODER.encode(part)
            waiting += LENGTH.pack(len(encoded))
            waiting += encoded
            while len(waiting) >= size_bytes:
                yield bytes(waiting[:size_bytes])
                del waiting[:size_bytes]
        if waiting:
            yield bytes(waiting)

    def _all_parts(self) -> Iterator[Part]:
        yield from self._parts
        messages, self._messages = self._messages, {}
        while messages:
            _, (message, places) = messages.popitem()
            yield KeptMessage(places, message.routing, message.header, message.body)

    # What is alive.

    def _note_ready(self, broker: "Broker") -> None:
        for queue_id, (_, owner) in broker.state.logged.items():
            if not owner.kernel.logged:
                continue
            due = owner.due_times() if isinstance(owner, DelayedMessages) else {}
            for sequence, term, deadline_ms, delivery_count, redelivered, message in owner.kernel.snapshot():
                at_ms = due.get(sequence, deadline_ms)
                self._note(message, (queue_id, sequence, term, at_ms, delivery_count, redelivered))

    def _note_unacked(self, broker: "Broker") -> None:
        for client in broker.clients:
            for channel in client.channels.values():
                for queue, sequence, term, deadline_ms, delivery_count, _, message in channel.kernel.unacked():
                    if queue.logged and not queue.deleted:
                        self._note(message, (queue.queue_id, sequence, term, deadline_ms, delivery_count, True))

    def _note_awaited(self, broker: "Broker") -> None:
        for admission in broker.admissions:
            for message, places in admission.messages:
                for queue, sequence, term in places:
                    if queue.logged and not queue.deleted:
                        owner = queue.owner
                        if isinstance(owner, DelayedMessages):
                            deadline_ms = due_ms(message, admission.now_ms)
                        else:
                            deadline_ms = _deadline_ms(owner, message, broker.now_ms)
                        self._note(message, (queue.queue_id, sequence, term, deadline_ms, 0, False))

    def _note(self, message: kernel.Message, place: Place) -> None:
        if message.persistent:
            self._messages.setdefault(id(message), (message, []))[1].append(place)


def _deadline_ms(queue: "Queue", message: kernel.Message, now_ms: int) -> int:
    """Of a message that is about to enter the queue."""
    lives = [ms for ms in (queue.settings.ttl_ms, message.expiration_ms) if ms >= 0]
    return now_ms + min(lives) if lives else kernel.NEVER_MS


def read_parts(buffer: bytearray) -> Iterator[Part]:
    """Takes the whole records off the front of what came so far. Raises ValueError if they are none."""
    start = 0
    while len(buffer) - start >= LENGTH.size:
        (length,) = LENGTH.unpack_from(buffer, start)
        end = start + LENGTH.size + length
        if end > len(buffer):
            break
        part: Part = _DECODER.decode(memoryview(buffer)[start + LENGTH.size : end].tobytes())
        start = end
        yield part
    del buffer[:start]
