"""The part of the contract of the kernel (`_fast.pyi`) that is about what comes in: messages, runs, the scanner.

There is no module of this name: both twins offer all of it themselves.
"""

from typing import Any, final

@final
class Message:
    """What was published, and where to. Immutable, shared by all queues that hold it."""

    routing: bytes  # exchange and routing key as two AMQP short strings, as basic.deliver repeats them
    header: bytes  # the content header's payload: class, weight, body size, flags, properties
    body: bytes
    body_size: int  # len(body), except for OVERSIZED
    persistent: bool  # delivery mode 2
    kept: bool  # the log has it, in logged queues: from the start if it is persistent, else since it was enqueued
    priority: int  # 0 when absent
    expiration_ms: int  # -1 when absent or not a number
    special: int
    producer: int  # whose publish it is, and its number there; 0 if the channel has no producer, or does not count.
    number: int  # Of a delivery of another broker: the term and the sequence that it has there, 0 if it does not say
    suspect: bool  # settable, False at first; queues take it as one that may have been delivered before
    def __init__(self, routing: bytes, header: bytes, body: bytes) -> None: ...
    @property
    def exchange(self) -> str: ...  # decoded with errors="surrogateescape"
    @property
    def routing_key(self) -> str: ...
    def find_header(self, name: bytes) -> bytes | None:
        """The raw value (type octet and bytes) of one entry of the headers, or None. Never raises for malformed
        tables."""

def routing_of(exchange: str, routing_key: str) -> bytes:
    """The bytes of Message.routing. Raises ValueError beyond 255 bytes each."""

@final
class PublishRun:
    """Consecutive complete publishes, on any channels, in the order in which they became complete."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> tuple[int, Message, int]: ...  # channel number, message, flags

@final
class DeliveryRun:
    """Consecutive complete deliveries of another broker, on any channels."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> tuple[int, bytes, int, bool, Message]: ...
    # channel number, consumer tag, delivery tag, redelivered, message

@final
class SettleRun:
    """Consecutive acks, nacks and rejects, on any channels."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> tuple[int, int, int, bool, bool]: ...
    # channel number, method id (80 ack, 90 reject, 120 nack), delivery tag, multiple, requeue

@final
class Scanner:
    """Turns the bytes of one connection, after the protocol header, into runs and frames. Keeps an incomplete frame
    and incomplete contents.

    What is wrong with them comes as one last ScanFault, after everything valid before it, and always ends the
    connection; after that feed returns []. The codes are RabbitMQ's: 501 for what cannot be read (frames and the
    methods of content and settlement), 504 for such a method on channel 0, 505 for a frame in a place where another
    one is due. Frame.kind is 1 (method) or 8 (heartbeat); content frames never come as such.

    An inward one is for what another broker sends: deliveries instead of publishes, other methods with content as
    Content. There a body beyond body_size_max is a fault; else it becomes a publish with the flag OVERSIZED.
    """

    frame_max: int  # octets, the whole frame; 0 means no limit was agreed (the caller sets the broker's own)
    body_size_max: int
    def __init__(self, frame_max: int, body_size_max: int, inward: bool = False) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview) -> list[Any]: ...
    # list[PublishRun | SettleRun | Frame | ScanFault], or list[DeliveryRun | SettleRun | Content | Frame | ScanFault]
    @property
    def buffered_bytes(self) -> int: ...  # kept for incomplete frames and contents
