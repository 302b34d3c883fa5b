"""The effects that the sessions request from the runtime: a closed set, to be carried out in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, assert_never

if TYPE_CHECKING:
    from pandomq.node.data.session import DataSession


class FileRange(NamedTuple):
    """Bytes that are in a file of the store, and need not be in memory to be sent."""

    file: str
    """Its name in the store's directory."""
    offset: int
    length: int


PayloadPart = bytes | memoryview | FileRange


class SendParts(NamedTuple):
    """The runtime calls `DataSessions.sent` once all of it is with the system, and `progressed` when a part is."""

    client: DataSession
    parts: Sequence[PayloadPart]


class CloseSession(NamedTuple):
    """Send what is under way, and close."""

    client: DataSession


class AbortSession(NamedTuple):
    client: DataSession


class PauseSession(NamedTuple):
    client: DataSession


class ResumeSession(NamedTuple):
    client: DataSession


SessionEffect = SendParts | CloseSession | AbortSession | PauseSession | ResumeSession


def carry_out(effect: SessionEffect) -> None:
    """Carries out an effect, for runtimes whose sockets all take the same calls."""
    socket = effect.client.socket
    match effect:
        case SendParts(_, parts):
            socket.send(parts)
        case CloseSession():
            socket.close()
        case AbortSession():
            socket.abort()
        case PauseSession():
            socket.pause_reading()
        case ResumeSession():
            socket.resume_reading()
        case _:
            assert_never(effect)
