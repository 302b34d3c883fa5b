"""The states of a connection as the broker sees it, and what may arrive on channel 0 in each.

    HEADER ──▶ STARTING ──▶ LOGIN ──▶ TUNING ──▶ OPENING ──▶ VHOST ──▶ RUNNING
                                         │           │                    │
                                         └───────────┴──── close ─────────┴──▶ ENDING ──▶ CLOSED

    LOGIN ── the broker's challenge ──▶ SECURING ── secure-ok ──▶ LOGIN

    any state ── fault ──▶ ENDING ── the broker's close ──▶ CLOSING ── close-ok ──▶ CLOSED

LOGIN, VHOST and ENDING wait for the broker, the others for the peer. In LOGIN and VHOST what arrives is held;
in ENDING, CLOSING and CLOSED it is discarded, but for the peer's close and close-ok.
"""

from enum import Enum, auto
from typing import Final

from pandomq.methods import (
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionSecureOk,
    ConnectionStartOk,
    ConnectionTuneOk,
    ConnectionUpdateSecret,
    Method,
)


class State(Enum):
    HEADER = auto()
    STARTING = auto()
    LOGIN = auto()
    SECURING = auto()
    TUNING = auto()
    OPENING = auto()
    VHOST = auto()
    RUNNING = auto()
    ENDING = auto()
    CLOSING = auto()
    CLOSED = auto()


TRANSITIONS: Final[dict[State, dict[type[Method], State]]] = {
    State.STARTING: {ConnectionStartOk: State.LOGIN},
    State.SECURING: {ConnectionSecureOk: State.LOGIN},
    State.TUNING: {ConnectionTuneOk: State.OPENING, ConnectionClose: State.ENDING},
    State.OPENING: {ConnectionOpen: State.VHOST, ConnectionClose: State.ENDING},
    State.RUNNING: {ConnectionUpdateSecret: State.RUNNING, ConnectionClose: State.ENDING},
    State.ENDING: {ConnectionClose: State.ENDING},
    State.CLOSING: {ConnectionClose: State.CLOSING, ConnectionCloseOk: State.CLOSED},
}
"""Where a method on channel 0 leads. What is not listed is discarded once it is over, a fault before."""

HANDSHAKE: Final = frozenset({State.STARTING, State.SECURING, State.TUNING, State.OPENING})
"""The peer has to speak, and may only speak of the connection."""
OVER: Final = frozenset({State.ENDING, State.CLOSING, State.CLOSED})
"""Nothing that arrives matters any more, except for a decent end."""
