"""A window that moves along a file: few large reads serve many small ones."""

from pandomq.journal.effects import FileName
from pandomq.journal.work import Work, read


class ReadWindow:
    __slots__ = ("_chunk_bytes", "_file", "data", "size_bytes", "start")

    def __init__(self, file: FileName, size_bytes: int, chunk_bytes: int) -> None:
        self._file = file
        self._chunk_bytes = chunk_bytes
        self.size_bytes = size_bytes
        self.start = 0
        self.data = b""

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def covers(self, position: int, length: int) -> bool:
        return self.start <= position and position + length <= self.end

    def move(self, position: int, length: int) -> Work[None]:
        """Brings this many bytes from this position on into the window, and as many more as one read returns; fewer at
        the end of the file."""
        wanted = min(max(length, self._chunk_bytes), self.size_bytes - position)
        self.data = (yield from read(self._file, position, wanted)) if wanted > 0 else b""
        self.start = position

    def look(self, position: int, length: int) -> Work[bytes]:
        """Returns `length` bytes from `position` on; fewer at the end of the file."""
        if not self.covers(position, length) and not (self.start <= position and self.end >= self.size_bytes):
            yield from self.move(position, length)
        at = position - self.start
        return self.data[at : at + length]
