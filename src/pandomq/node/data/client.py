"""One connection to the data port, from accept to the last byte, and the answer to its current request.

    NEW ──hello──▶ LOGGING_IN ──▶ READY ──▶ ENDED
     └───────────────┴──── refused ─────────▲

Requests are handled one at a time and in order: the next one begins when the answer to the last is with the system. So
a client that does not read is not worked for.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from pandomq import data_form
from pandomq.data_form import BadMessage, Fields
from pandomq.errors import Fault
from pandomq.node.data.effects import FileRange, Part
from pandomq.node.data.refusals import Refused, of_fault
from pandomq.node.data.scanner import Request, Scanner
from pandomq.node.data.traffic import Traffic
from pandomq.node.link import address_name
from pandomq.node.proxy_header import BehindProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pandomq.broker.permissions import Access
    from pandomq.broker.vhost import Vhost
    from pandomq.node.data.services import Services


class State(Enum):
    NEW = auto()
    LOGGING_IN = auto()
    READY = auto()
    ENDED = auto()
    """Nothing more is read or begun; what is under way is sent."""


class DataClient(BehindProxy):
    """`socket` is the runtime's: it is passed on and never touched here."""

    __slots__ = (
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

    def __init__(self, socket: Any, peer: tuple[str, int], services: Services, now_ms: int, *, tls: bool) -> None:
        super().__init__(peer)
        self.socket = socket
        self.services = services
        self.tls = tls
        self.certificate_name: str | None = None
        """In the certificate that the client showed."""
        self.state = State.NEW
        self.gone = False
        """The socket is closed."""
        self.scanner = Scanner()
        self.requests: deque[Request] = deque()
        self.under_way: Answer | None = None
        """What is being found out, or sent."""
        self.sending_bytes: int | None = None
        """In memory, of the answer that is being sent; None: none is."""
        self.reserved_bytes = 0
        """The room that requests take which are not answered yet."""
        self.reading_paused = False
        self.waits_for_room = False
        self.since_ms = self.moved_ms = now_ms
        """When a byte last went in either direction."""
        self.traffic = Traffic()
        self.user = ""
        self.vhost_name = ""

    @property
    def peer_name(self) -> str:
        return address_name(self.peer)

    @property
    def vhost(self) -> Vhost:
        """Raises Refused (403) if it is gone, or the user's access to it."""
        return self._entered()[0]

    @property
    def access(self) -> Access:
        """What the user may do in its vhost by now. Raises Refused (403)."""
        return self._entered()[1]

    def _entered(self) -> tuple[Vhost, Access]:
        state = self.services.broker.state
        vhost = state.vhosts.get(self.vhost_name)
        access = None if vhost is None else vhost.access.get(self.user)
        if vhost is None or access is None or access.permissions is None or self.user not in state.users:
            raise Refused(
                data_form.ACCESS_REFUSED, f"access to vhost '{self.vhost_name}' refused for user '{self.user}'"
            )
        return vhost, access


class Answer:
    """To one request. Exactly one of its methods is to be called, once, now or from within a later step; if the client
    has gone meanwhile that does nothing."""

    __slots__ = ("_on_given", "client", "given", "reserved_bytes")

    def __init__(
        self, client: DataClient, reserved_bytes: int, on_given: Callable[[Answer, Sequence[Part], bool], None]
    ) -> None:
        self.client = client
        self.reserved_bytes = reserved_bytes
        """The room that the request takes."""
        self.given = False
        self._on_given = on_given

    def ok(self, fields: Fields | None = None, payload: Sequence[Part] = ()) -> None:
        """The payload's parts are sent one after the other, as they are."""
        size = sum(part.length if isinstance(part, FileRange) else len(part) for part in payload)
        try:
            begin = data_form.encode_json(fields or {}, size, data_form.DATA_ANSWER_BYTES_MAX)
        except BadMessage as too_large:
            self.refuse(Refused(data_form.TOO_LARGE, f"the answer would be too large, ask for less: {too_large}"))
            return
        self._give([begin, *payload], ends=False)

    def refuse(self, refused: Refused | Fault, *, ends: bool = False) -> None:
        """`ends`: the connection with it."""
        self._give([encode_refusal(of_fault(refused) if isinstance(refused, Fault) else refused)], ends=ends)

    def _give(self, parts: list[Part], *, ends: bool) -> None:
        assert not self.given, "a request has one answer"
        self.given = True
        if not self.client.gone:
            self._on_given(self, parts, ends)


def encode_refusal(refused: Refused) -> bytes:
    return data_form.encode_json({"error": refused.code, "text": refused.text, **refused.fields})
