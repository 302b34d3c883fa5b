"""The record of a world: a hash of everything that crosses an interface, and a story for readers.

Two runs of a seed are equal if their hashes are. The story contains faults, starts and ends. With details it also names
each method that is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final

from pandomq.journal.effects import Create, Read, Rename, Request, Resize, SyncFile, Write
from pandomq.sim.agenda import Agenda

STORY_LINES_MAX: Final = 40
"""The number of lines in the story of a failure; the last ones are kept."""


class WorldTrace:
    __slots__ = ("_agenda", "_digest", "_show", "story")

    def __init__(self, agenda: Agenda, show: Callable[[str], None] | None = None) -> None:
        """`show` is called with each event, as it happens."""
        self._agenda = agenda
        self._digest = blake2b(digest_size=16)
        self._show = show
        self.story: deque[str] = deque(maxlen=STORY_LINES_MAX)

    @property
    def hash(self) -> str:
        return self._digest.hexdigest()

    @property
    def detailed(self) -> bool:
        return self._show is not None

    def crossed(self, border: bytes, data: bytes) -> None:
        self._digest.update(b"%d %b %d:%b" % (self._agenda.now_ms, border, len(data), data))

    def asked(self, border: bytes, requests: Iterable[Request]) -> None:
        """Requests were made to a disk."""
        parts: list[bytes] = [b"%d %b" % (self._agenda.now_ms, border)]
        for _, lane, effect in requests:
            what = ""
            chunks: tuple[bytes, ...] = ()
            match effect:
                case Write(file, offset, chunks):
                    what = f"{file} {offset}"
                case SyncFile():
                    pass
                case Read(file, offset, length):
                    what = f"{file} {offset} {length}"
                case Rename(file, new):
                    what = f"{file} {new}"
                case Resize(file, size_bytes) | Create(file, size_bytes):
                    what = f"{file} {size_bytes}"
                case _:
                    pass
            # `value` is a descriptor in Python.
            parts.append(f"{lane._value_} {type(effect).__name__}{what}".encode())
            parts += chunks
        self._digest.update(b"".join(parts))

    def say(self, who: str, what: str) -> None:
        line = f"{self._agenda.now_ms:>8} ms  {who:<12} {what}"
        self._digest.update(line.encode())
        self.story.append(line)
        if self._show is not None:
            self._show(line)

    def detail(self, who: str, what: str) -> None:
        """Adds a detail to the story. Callers check `detailed` first if making the text takes time."""
        if self._show is not None:
            self._show(f"{self._agenda.now_ms:>8} ms  {who:<12} {what}")
