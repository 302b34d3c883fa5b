"""Joins requests that have gathered for a lane, so that the disk sees as few writes and syncs as possible.

Writes and syncs of one file that follow each other become one run: writes that continue each other become one, and one
sync at the end serves for all. All requests of a run are complete when it is: a sync later than asked for is still a
sync of what came before. Everything else is a run of its own. The order of runs is that of the requests.

A run is bounded: whoever waits for the first of many hears of it before all are done, and can tell a disk that is slow
from one that does not move.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from pandomq.journal.effects import Effect, FileName, Request, SyncFile, Write
from pandomq.limits import MIB

RUN_BYTES_MAX: Final = 8 * MIB
"""Written in one run, unless a single request is larger."""


class Run(NamedTuple):
    effects: list[Effect]
    """What is to be done."""
    requests: list[Request]
    """What it is done for."""


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
        # It would move ahead of those that came before it: none of them may have written to the same place.
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
