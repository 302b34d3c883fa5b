"""One connection to the data port, from accept to the last byte, and the answer to its current request.

    NEW ──hello──▶ LOGGING_IN ──▶ READY ──▶ ENDED
     └───────────────┴──── refused ─────────▲

Requests are handled one at a time and in order: the next one begins when the operating system has taken the answer to
the last one. So the broker does no work for a client that does not read.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from pandomq import data_form
from pandomq.data_form import BadDataMessage, Fields
from pandomq.errors import Fault
from pandomq.node.clients.client_link import address_name
from pandomq.node.clients.proxy_header import BehindProxy
from pandomq.node.data.effects import FileRange, PayloadPart
from pandomq.node.data.refusals import RequestRefused, of_fault
from pandomq.node.data.scanner import DataRequest, DataScanner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pandomq.broker.administration.permissions import VhostAccess
    from pandomq.broker.vhost import Vhost
    from pandomq.node.data.services import DataServices


class DataSessionState(Enum):
    NEW = auto()
    LOGGING_IN = auto()
    READY = auto()
    ENDED = auto()
    """Nothing more is read or begun; data that is being sent is sent to its end."""


class Traffic:
    """The traffic of the data port, of one client or of all."""

    __slots__ = ("received_bytes", "requests", "sent_bytes")

    def __init__(self) -> None:
        self.received_bytes = 0
        self.sent_bytes = 0
        """Counted when they are queued for sending."""
        self.requests = 0
        """Requests that were begun."""


class DataSession(BehindProxy):
    """`socket` belongs to the runtime: it is passed on and never touched here."""

    __slots__ = (
        "arriving_ms",
        "certificate_name",
        "gone",
        "moved_ms",
        "reading_paused",
        "requests",
        "reserved_bytes",
        "scanner",
        "sending_bytes",
        "services",
        "since_ms",
        "socket",
        "state",
        "tls",
        "traffic",
        "under_way",
        "user",
        "vhost_name",
        "waits_for_room",
    )

    def __init__(self, socket: Any, peer: tuple[str, int], services: DataServices, now_ms: int, *, tls: bool) -> None:
        super().__init__(peer)
        self.socket = socket
        self.services = services
        self.tls = tls
        self.certificate_name: str | None = None
        """The name in the certificate that the client showed."""
        self.state = DataSessionState.NEW
        self.gone = False
        """The socket is closed."""
        self.scanner = DataScanner()
        self.requests: deque[DataRequest] = deque()
        self.under_way: Responder | None = None
        """The answer that is being prepared, or sent."""
        self.sending_bytes: int | None = None
        """The bytes in memory of the answer that is being sent; None: there is none."""
        self.reserved_bytes = 0
        """The room that unanswered requests take."""
        self.reading_paused = False
        self.waits_for_room = False
        self.since_ms = self.moved_ms = now_ms
        """The time when a byte last went in either direction."""
        self.arriving_ms: int | None = None
        """Since when the request that has begun arrives; None: there is none."""
        self.traffic = Traffic()
        self.user = ""
        self.vhost_name = ""

    @property
    def peer_name(self) -> str:
        return address_name(self.peer)

    @property
    def vhost(self) -> Vhost:
        """Raises Refused (403) if the vhost is deleted, or the user has lost access to it."""
        return self._entered()[0]

    @property
    def access(self) -> VhostAccess:
        """The user's current rights in its vhost. Raises Refused (403)."""
        return self._entered()[1]

    def _entered(self) -> tuple[Vhost, VhostAccess]:
        state = self.services.broker.state
        vhost = state.vhosts.get(self.vhost_name)
        access = None if vhost is None else vhost.access.get(self.user)
        if vhost is None or access is None or access.permissions is None or self.user not in state.users:
            raise RequestRefused(
                data_form.ACCESS_REFUSED, f"access to vhost '{self.vhost_name}' refused for user '{self.user}'"
            )
        return vhost, access


class Responder:
    """The answer to one request. Exactly one of its methods is to be called, once, now or from within a later step; if
    the client has disconnected meanwhile that does nothing."""

    __slots__ = ("_on_given", "client", "given", "reserved_bytes")

    def __init__(
        self,
        client: DataSession,
        reserved_bytes: int,
        on_given: Callable[[Responder, Sequence[PayloadPart], bool], None],
    ) -> None:
        self.client = client
        self.reserved_bytes = reserved_bytes
        """The room that the request takes."""
        self.given = False
        self._on_given = on_given

    def ok(self, fields: Fields | None = None, payload: Sequence[PayloadPart] = ()) -> None:
        """Sends the payload's parts one after the other, as they are."""
        size = sum(part.length if isinstance(part, FileRange) else len(part) for part in payload)
        try:
            begin = data_form.encode_json(fields or {}, size, data_form.DATA_ANSWER_BYTES_MAX)
        except BadDataMessage as too_large:
            self.refuse(
                RequestRefused(data_form.TOO_LARGE, f"the response would be too large, request less: {too_large}")
            )
            return
        self._give([begin, *payload], ends=False)

    def refuse(self, refused: RequestRefused | Fault, *, ends: bool = False) -> None:
        """`ends`: the connection ends with the answer."""
        self._give([encode_refusal(of_fault(refused) if isinstance(refused, Fault) else refused)], ends=ends)

    def _give(self, parts: list[PayloadPart], *, ends: bool) -> None:
        assert not self.given, "a request has one answer"
        self.given = True
        if not self.client.gone:
            self._on_given(self, parts, ends)


def encode_refusal(refused: RequestRefused) -> bytes:
    return data_form.encode_json({"error": refused.code, "text": refused.text, **refused.fields})
