"""The part of the contract of the kernel (`_fast.pyi`) that is about how messages of streams are kept.

There is no module of this name: both twins offer all of it themselves.
"""

from typing import final

from pandomq.kernel._fast_inputs import Message

@final
class Chunk:
    """Messages of a stream in columns, in the form of `pandomq.chunk_form`. While it is open messages are added; once
    it is sealed it never changes. Who reads from it may go on meanwhile."""

    count: int
    @property
    def first_offset(self) -> int: ...  # these four are 0 of an empty one
    @property
    def last_offset(self) -> int: ...
    @property
    def first_time_us(self) -> int: ...
    @property
    def last_time_us(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...  # when it is sealed
    def __init__(self) -> None: ...
    @staticmethod
    def open(data: bytes) -> Chunk:
        """What `seal` gave. Raises chunk_form.BadChunk for anything else."""
    def add(self, offset: int, time_us: int, message: Message) -> None:
        """Offsets rise, times do not fall: else ValueError. OverflowError, and nothing was added, if it is full."""
    def seal(self) -> bytes:
        """ValueError if it is empty. Called again it gives the same object."""
    def seal_rows(self, count: int) -> bytes:
        """As if it had only so many messages, the first ones, and were sealed; it stays as it is. ValueError if there
        are not so many, or for 0."""
    def let_go(self) -> None:
        """It is empty from now on, and takes no memory: consumers that read it will want it again. For who keeps the
        bytes of a sealed chunk elsewhere; ValueError of an open one."""
    def find_offset(self, offset: int) -> int: ...  # the position of the first message whose offset is not lower
    def find_time(self, time_us: int) -> int: ...
    def row(self, position: int) -> tuple[int, int, bytes, bytes, bytes, bytes]: ...  # as chunk_form.Row
