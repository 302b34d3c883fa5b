"""What the desk asks of the runtime: a closed set, to be carried out in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, assert_never

if TYPE_CHECKING:
    from pandomq.node.data.client import DataClient


class FileRange(NamedTuple):
    """Bytes that are in a file of the store, and need not be in memory to be sent."""

    file: str
    """Its name in the store's directory."""
    offset: int
    length: int


Part = bytes | memoryview | FileRange


class Send(NamedTuple):
    """Then `DataDesk.sent` is told, once all of it is with the system, and `progressed` whenever some of it is."""

    client: DataClient
    parts: Sequence[Part]


class Close(NamedTuple):
    """Send what is under way, and hang up."""

    client: DataClient


class Abort(NamedTuple):
    client: DataClient


class PauseReading(NamedTuple):
    client: DataClient


class ResumeReading(NamedTuple):
    client: DataClient


Effect = Send | Close | Abort | PauseReading | ResumeReading


def carry_out(effect: Effect) -> None:
    """For runtimes, whose sockets all take the same calls."""
    socket = effect.client.socket
    match effect:
        case Send(_, parts):
            socket.send(parts)
        case Close():
            socket.close()
        case Abort():
            socket.abort()
        case PauseReading():
            socket.pause_reading()
        case ResumeReading():
            socket.resume_reading()
        case _:
            assert_never(effect)
