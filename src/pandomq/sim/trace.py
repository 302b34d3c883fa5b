"""What happened in a world: a hash of everything that crossed a border, and a story for people.

Two runs of a seed are the same if their hashes are. The story has faults, starts and ends; a person who wants to see a
seed's whole course asks for details, which also name each method that is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final

from pandomq.journal.effects import Create, Read, Rename, Request, Resize, Write
from pandomq.sim.agenda import Agenda

STORY_LINES_MAX: Final = 40
"""Of a failure; the last ones."""


class Trace:
    __slots__ = ("_agenda", "_digest", "_show", "story")

    def __init__(self, agenda: Agenda, show: Callable[[str], None] | None = None) -> None:
        """`show` is told everything, as it happens."""
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
        self._digest.update(b"%d %s %d:" % (self._agenda.now_ms, border, len(data)))
        self._digest.update(data)

    def asked(self, border: bytes, requests: Iterable[Request]) -> None:
        """Of a disk."""
        update = self._digest.update
        update(b"%d %s" % (self._agenda.now_ms, border))
        for _, lane, effect in requests:
            update(f"{lane.value} {type(effect).__name__}".encode())
            match effect:
                case Write(file, offset, chunks):
                    update(f"{file} {offset}".encode())
                    for chunk in chunks:
                        update(chunk)
                case Read(file, offset, length):
                    update(f"{file} {offset} {length}".encode())
                case Rename(file, new):
                    update(f"{file} {new}".encode())
                case Resize(file, size_bytes) | Create(file, size_bytes):
                    update(f"{file} {size_bytes}".encode())
                case _:
                    pass

    def say(self, who: str, what: str) -> None:
        line = f"{self._agenda.now_ms:>8} ms  {who:<12} {what}"
        self._digest.update(line.encode())
        self.story.append(line)
        if self._show is not None:
            self._show(line)

    def detail(self, who: str, what: str) -> None:
        """For those who want to see everything; callers ask `detailed` first if making the text takes time."""
        if self._show is not None:
            self._show(f"{self._agenda.now_ms:>8} ms  {who:<12} {what}")
