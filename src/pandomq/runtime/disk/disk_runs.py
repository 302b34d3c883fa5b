"""Joins waiting requests of a lane, so that the disk gets as few writes and syncs as possible.

Consecutive writes and syncs of one file become one run: adjacent writes become one, and one sync at the end serves for
all. All requests of a run complete with it: a sync later than requested still covers everything before it. Every other
request is a run of its own. Runs keep the order of the requests.

A run is bounded: the first of many requests completes before all are done, so that a slow disk can be distinguished
from a stalled one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from pandomq.journal.effects import Effect, FileName, Request, SyncFile, Write
from pandomq.limits import MIB

RUN_BYTES_MAX: Final = 8 * MIB
"""Bytes written in one run, unless a single request is larger."""


class Run(NamedTuple):
    effects: list[Effect]
    """The effects to carry out."""
    requests: list[Request]
    """The requests that they complete."""


def joined(requests: list[Request]) -> Iterator[Run]:
    place = 0
    while place < len(requests):
        effect = requests[place].effect
        end = place + 1
        if isinstance(effect, Write | SyncFile):
            size_bytes = _size_of(effect)
            while end < len(requests) and _continues(requests[end].effect, effect.file):
                size_bytes += _size_of(requests[end].effect)
                if size_bytes > RUN_BYTES_MAX:
                    break
                end += 1
            yield Run(_join(requests[place:end], effect.file), requests[place:end])
        else:
            yield Run([effect], requests[place:end])
        place = end


def _size_of(effect: Effect) -> int:
    return sum(map(len, effect.chunks)) if isinstance(effect, Write) else 0


def _continues(effect: Effect, file: FileName) -> bool:
    return isinstance(effect, Write | SyncFile) and effect.file == file


def _join(requests: list[Request], file: FileName) -> list[Effect]:
    stretches: list[_Stretch] = []
    syncs = False
    for request in requests:
        effect = request.effect
        if isinstance(effect, Write):
            _add(stretches, effect)
        else:
            syncs = True
    effects: list[Effect] = [Write(file, stretch.start, tuple(stretch.chunks)) for stretch in stretches]
    if syncs:
        effects.append(SyncFile(file))
    return effects


class _Stretch:
    __slots__ = ("chunks", "end", "start")

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.chunks: list[bytes] = []


def _add(stretches: list[_Stretch], write: Write) -> None:
    end = write.offset + _size_of(write)
    for place, stretch in enumerate(stretches):
        # It would overtake earlier ones: none of them may have written to the same place.
        overtaken = stretches[place + 1 :]
        if stretch.end == write.offset and not any(
            other.start < end and write.offset < other.end for other in overtaken
        ):
            break
    else:
        stretch = _Stretch(write.offset)
        stretches.append(stretch)
    stretch.chunks += write.chunks
    stretch.end = end
