"""What a step asks of the runtime: bytes to write, and a closed set of controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, assert_never

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pandomq.cluster.parcels import Octets
    from pandomq.journal.effects import Request
    from pandomq.node.attempts import Attempt
    from pandomq.node.data.effects import Effect
    from pandomq.node.dialed import Dialed
    from pandomq.node.link import Link
    from pandomq.node.logins import Question


class Close(NamedTuple):
    """Send what is buffered, say that nothing follows, and hang up once the client has, or after a while."""

    link: Link


class Abort(NamedTuple):
    """Close the socket at once."""

    link: Link


class PauseReading(NamedTuple):
    """Leave what the client sends in its socket: TCP holds it back."""

    link: Link | Dialed


class ResumeReading(NamedTuple):
    link: Link | Dialed


class VerifyPassword(NamedTuple):
    """Find the answer to the question outside the loop, then say it to `Node.verified`."""

    attempt: Attempt
    question: Question


class Dial(NamedTuple):
    """Connect to another broker, then say so to the owner's `dialed`, or why not to `not_dialed`."""

    dialed: Dialed


class HangUp(NamedTuple):
    """As `Close`, for a connection to another broker."""

    dialed: Dialed


Control = Close | Abort | PauseReading | ResumeReading | VerifyPassword
PeerControl = Dial | HangUp | PauseReading | ResumeReading


class Output(NamedTuple):
    writes: list[tuple[Link, bytes]]
    controls: list[Control]
    """Carried out after the writes, in order."""
    more: bool
    """Another step has work to do, once these writes are under way."""
    disk: Sequence[Request] = ()
    """For the disk; `Node.disk_completed` is told what it did."""
    sends: Sequence[tuple[str, bytes]] = ()
    """Whole messages for other brokers, by name and in order. Any of them may be lost. None where the node has links
    of its own: there they are among `peer_writes`."""
    restart: str | None = None
    """This is the node's last output, and why. When it is carried out, and the disk has done or forgotten all that it
    was asked for, a new journal and a new node take over its directory; clients have been told."""
    peer_writes: Sequence[tuple[Dialed, Octets]] = ()
    """As `writes`, on connections that were dialed to other brokers."""
    peer_controls: Sequence[PeerControl] = ()
    """Carried out after these."""
    data: Sequence[Effect] = ()
    """For connections to the data port."""


def carry_out(
    control: Control | PeerControl, dial: Callable[[Dialed], None], verify: Callable[[Attempt, Question], None]
) -> None:
    """For runtimes, whose sockets all take the same calls."""
    match control:
        case Close(link):
            link.socket.close()
        case Abort(link):
            link.socket.abort()
        case PauseReading(link):
            link.socket.pause_reading()
        case ResumeReading(link):
            link.socket.resume_reading()
        case VerifyPassword(attempt, question):
            verify(attempt, question)
        case Dial(dialed):
            dial(dialed)
        case HangUp(dialed):
            dialed.socket.close()
        case _:
            assert_never(control)
