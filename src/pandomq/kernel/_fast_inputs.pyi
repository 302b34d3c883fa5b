"""The part of the kernel's contract (`_fast.pyi`) about input: messages, runs, the scanner.

There is no module of this name: both twins export these names themselves.
"""

from typing import Any, final

@final
class Message:
    """A published message and its destination. Immutable, shared by all queues that hold it."""

    routing: bytes  # exchange and routing key as two AMQP short strings, as basic.deliver repeats them
    header: bytes  # the content header's payload: class, weight, body size, flags, properties
    body: bytes
    body_size: int  # len(body), except for OVERSIZED
    persistent: bool  # delivery mode 2
    kept: bool  # logged queues have logged it: from the start if it is persistent, else since it was enqueued; never
    # if only local queues have it
    priority: int  # 0 when absent
    expiration_ms: int  # -1 when absent or not a number
    special: int
    producer: int  # the producer and the publish's number there; 0 if the channel has no producer, or does not count.
    number: int  # For a delivery from another broker: the term and the sequence that it has there, 0 if unknown
    suspect: bool  # settable, False at first; queues treat it as a message that may have been delivered before
    def __init__(self, routing: bytes, header: bytes, body: bytes) -> None: ...
    @property
    def exchange(self) -> str: ...  # decoded with errors="surrogateescape"
    @property
    def routing_key(self) -> str: ...
    def find_header(self, name: bytes) -> bytes | None:
        """Returns the raw value (type octet and bytes) of one entry of the headers, or None. Never raises for malformed
        tables."""
    def unkept_copy(self) -> Message:
        """Returns a copy that is not `kept`, whatever its delivery mode, for local queues."""

def routing_of(exchange: str, routing_key: str) -> bytes:
    """Returns the bytes of Message.routing. Raises ValueError beyond 255 bytes each."""

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
    """Turns the bytes of one connection, after the protocol header, into runs and frames. Keeps an incomplete frame and
    incomplete contents.

    An error in the bytes is returned as one last ScanFault, after everything valid before it, and always ends the
    connection; later calls of feed return []. The codes are RabbitMQ's: 501 for malformed frames, contents and
    settlements, 504 for such a method on channel 0, 505 for an unexpected frame. Frame.kind is 1 (method) or 8
    (heartbeat); content frames are never returned as a Frame.

    An inward scanner reads what another broker sends: deliveries instead of publishes, and other methods with content
    as Content. On an inward scanner a body larger than body_size_max is a fault; otherwise it becomes a publish with
    the flag OVERSIZED.
    """

    frame_max: int  # octets, the whole frame; 0 means no limit was agreed (the caller sets the broker's own)
    body_size_max: int
    def __init__(self, frame_max: int, body_size_max: int, inward: bool = False) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview) -> list[Any]: ...
    # list[PublishRun | SettleRun | Frame | ScanFault], or list[DeliveryRun | SettleRun | Content | Frame | ScanFault]
    @property
    def buffered_bytes(self) -> int: ...  # bytes kept for incomplete frames and contents
