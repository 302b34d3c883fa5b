"""The part of the kernel's contract (`_fast.pyi`) about the storage of stream messages.

There is no module of this name: both twins export these names themselves.
"""

from typing import final

from pandomq.kernel._fast_inputs import Message

@final
class Chunk:
    """Messages of a stream in columns, in the form of `pandomq.chunk_form`. An open chunk accepts messages; a sealed
    chunk never changes. Reading may continue while it is sealed."""

    count: int
    @property
    def first_offset(self) -> int: ...  # these four are 0 for an empty chunk
    @property
    def last_offset(self) -> int: ...
    @property
    def first_time_us(self) -> int: ...
    @property
    def last_time_us(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...  # size when it is sealed
    def __init__(self) -> None: ...
    @staticmethod
    def open(data: bytes) -> Chunk:
        """Opens what `seal` returned. Raises chunk_form.BadChunk for anything else."""
    def add(self, offset: int, time_us: int, message: Message) -> None:
        """Adds a message. Raises ValueError unless offsets increase and times do not decrease. Raises OverflowError,
        and adds nothing, if the chunk is full."""
    def seal(self) -> bytes:
        """Seals the chunk and returns its bytes; further calls return the same object. ValueError if it is empty."""
    def seal_rows(self, count: int) -> bytes:
        """Returns the bytes that a chunk of only the first `count` messages would have; this chunk does not change.
        ValueError if it has fewer messages, or for 0."""
    def let_go(self) -> None:
        """Empties a sealed chunk and frees its memory, for a caller that keeps its bytes elsewhere; consumers that read
        it will request it again. ValueError for an open chunk."""
    def find_offset(self, offset: int) -> int: ...  # the position of the first message whose offset is not lower
    def find_time(self, time_us: int) -> int: ...
    def row(self, position: int) -> tuple[int, int, bytes, bytes, bytes, bytes]: ...  # like chunk_form.Row
