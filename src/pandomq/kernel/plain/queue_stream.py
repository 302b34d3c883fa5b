"""The part of a queue that may be a stream: a stream has no ready messages, and nothing that happens to those."""

from typing import TYPE_CHECKING

from pandomq.kernel.plain.chunk import Chunk
from pandomq.kernel.plain.queue_exits import QueueExits
from pandomq.kernel.plain.settings import Settings
from pandomq.kernel.plain.stream import StreamEnd

if TYPE_CHECKING:
    from pandomq.kernel.plain.engine import Engine


class QueueStream(QueueExits):
    """The additions of streams to a queue."""

    mirror: bool

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self.stream: StreamEnd | None = None
        self.next_sequence = 1
        self.published = 0
        self.synced = False
        self.is_outlet = False
        self.may_refuse = False  # it has a limit, and rejects messages
        self.may_drop = False  # it has a limit, and drops from its head

    def becomes_stream(self, stream: bool, chunk_bytes: int, chunk_age_ms: int) -> bool:
        """Whether the queue is a stream; then nothing else of its configuration applies."""
        if self.next_sequence == 1 and not self.consumer_count:
            if stream and not self.logged:
                raise ValueError("a stream is logged")
            self.stream = StreamEnd(self) if stream else None
        if self.stream is None:
            return False
        self.settings = Settings()
        self.may_refuse = self.may_drop = self.is_outlet = False
        self.single_active = self.withdrawable = self.mirror = False
        self.last_values = None
        self.ready.priority_max = 0
        self.synced = True
        self.stream.chunk_bytes = chunk_bytes
        self.stream.chunk_age_ms = chunk_age_ms
        return True

    @property
    def open_chunk(self) -> Chunk | None:
        return None if self.stream is None else self.stream.chunk

    @property
    def committed_end(self) -> int:
        return 0 if self.stream is None else self.stream.committed_end

    def reinstate_stream(self, next_sequence: int, open_rows: bytes) -> None:
        if self.stream is None:
            raise ValueError("not a stream")
        self.stream.reinstate(next_sequence, open_rows)
