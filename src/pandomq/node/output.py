"""The requests of a step to the runtime: bytes to write, and a closed set of controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, assert_never

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pandomq.cluster.dialed_connection import Dialed
    from pandomq.cluster.peer_messages import Octets
    from pandomq.journal.effects import Request
    from pandomq.node.clients.attempts import LoginAttempt
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.logins import PasswordCheck
    from pandomq.node.data.effects import SessionEffect

AnyLink: TypeAlias = "ClientLink | Dialed"
"""A connection that this broker has accepted, or dialed. The runtime treats both in the same way."""
Writes: TypeAlias = "list[tuple[AnyLink, Octets]]"


class Close(NamedTuple):
    """Send what is buffered, then the end of file, and close once the other end has closed, or after a while."""

    link: AnyLink


class Abort(NamedTuple):
    """Close the socket at once."""

    link: ClientLink


class PauseReading(NamedTuple):
    """Leave what the other end sends in its socket: TCP holds it back."""

    link: AnyLink


class ResumeReading(NamedTuple):
    link: AnyLink


class VerifyPassword(NamedTuple):
    """Find the answer to the question outside the loop, then pass it to `Node.verified`."""

    attempt: LoginAttempt
    question: PasswordCheck


class Dial(NamedTuple):
    """Connect to another broker, then report it to `Node.dialed`, or the failure to `Node.not_dialed`."""

    dialed: Dialed


Control = Close | Abort | PauseReading | ResumeReading | VerifyPassword | Dial


class Output(NamedTuple):
    writes: Writes
    controls: Sequence[Control]
    """Carried out after the writes, in order."""
    more: bool
    """Another step has work to do, once these writes are under way."""
    disk: Sequence[Request] = ()
    """Requests for the disk; `Node.disk_completed` takes the results."""
    restart: str | None = None
    """The reason, if this is the node's last output. When it is carried out, and the disk has done or forgotten all
    requests, a new journal and a new node take over its directory; clients have been notified."""
    data: Sequence[SessionEffect] = ()
    """Effects on connections to the data port."""


def carry_out(
    control: Control, dial: Callable[[Dialed], None], verify: Callable[[LoginAttempt, PasswordCheck], None]
) -> None:
    """Carries out an output, for runtimes whose sockets all take the same calls."""
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
        case _:
            assert_never(control)
