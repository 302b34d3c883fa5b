"""Messages of a stream in columns, open or sealed; `pandomq.chunk_form` has the form."""

from bisect import bisect_left

from pandomq.chunk_form import (
    COLUMN,
    COLUMN_BYTES_MAX,
    COLUMNS,
    HEAD_BYTES,
    MessageRow,
    aligned,
    decode_rows,
    encode,
)
from pandomq.kernel.constants import CHUNK_ROW_BYTES
from pandomq.kernel.plain.message import Message


class Chunk:
    """See the contract."""

    def __init__(self) -> None:
        self._rows: list[MessageRow] = []
        self._sealed: bytes | None = None
        self._sizes = [0, 0, 0, 0]

    @staticmethod
    def open(data: bytes) -> "Chunk":
        chunk = reopened(data)
        chunk._sealed = data
        return chunk

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def first_offset(self) -> int:
        return self._rows[0].offset if self._rows else 0

    @property
    def last_offset(self) -> int:
        return self._rows[-1].offset if self._rows else 0

    @property
    def first_time_us(self) -> int:
        return self._rows[0].time_us if self._rows else 0

    @property
    def last_time_us(self) -> int:
        return self._rows[-1].time_us if self._rows else 0

    @property
    def content_bytes(self) -> int:
        """Decides whether the chunk is full."""
        return sum(self._sizes) + CHUNK_ROW_BYTES * self.count

    @property
    def size_bytes(self) -> int:
        if self._sealed is not None:
            return len(self._sealed)
        ends = aligned(4 * (self.count + 1)) * 4
        numbers = aligned(8 * self.count) * 2
        return aligned(HEAD_BYTES + COLUMN.size * COLUMNS) + numbers + ends + sum(map(aligned, self._sizes))

    def add(self, offset: int, time_us: int, message: Message) -> None:
        if self._sealed is not None:
            raise ValueError("the chunk is sealed")
        if self._rows and (offset <= self.last_offset or time_us < self.last_time_us):
            raise ValueError("offsets must rise, and times not fall")
        exchange, routing_key = names_of(message.routing)
        self.add_row(MessageRow(offset, time_us, exchange, routing_key, message.header, message.body))

    def add_row(self, row: MessageRow) -> None:
        sizes = [size + len(value) for size, value in zip(self._sizes, row[2:], strict=True)]
        if max(sizes) > COLUMN_BYTES_MAX:
            raise OverflowError("the chunk is full")
        self._sizes = sizes
        self._rows.append(row)

    def seal(self) -> bytes:
        if not self._rows:
            raise ValueError("the chunk is empty")
        if self._sealed is None:
            self._sealed = encode(self._rows)
        return self._sealed

    def seal_rows(self, count: int) -> bytes:
        if not 0 < count <= self.count:
            raise ValueError(f"{count} of {self.count} messages")
        return encode(self._rows[:count])

    def let_go(self) -> None:
        if self._sealed is None:
            raise ValueError("the chunk is open")
        self._rows = []
        self._sealed = b""

    def find_offset(self, offset: int) -> int:
        return bisect_left(self._rows, offset, key=lambda row: row.offset)

    def find_time(self, time_us: int) -> int:
        return bisect_left(self._rows, time_us, key=lambda row: row.time_us)

    def row(self, position: int) -> tuple[int, int, bytes, bytes, bytes, bytes]:
        return self._rows[position]


def reopened(data: bytes) -> Chunk:
    """An open chunk with the messages of a sealed one. Raises BadChunk."""
    chunk = Chunk()
    for row in decode_rows(data):
        chunk.add_row(row)
    return chunk


def names_of(routing: bytes) -> tuple[bytes, bytes]:
    """Exchange and routing key. Raises ValueError if they are not two short strings."""
    if routing:
        middle = 1 + routing[0]
        if middle < len(routing) == middle + 1 + routing[middle]:
            return routing[1:middle], routing[middle + 1 :]
    raise ValueError("not an exchange and a routing key")
