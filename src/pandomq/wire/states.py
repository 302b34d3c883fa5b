"""The states of a connection on the broker's side, and the methods that may arrive on channel 0 in each.

    HEADER ──▶ STARTING ──▶ LOGIN ──▶ TUNING ──▶ OPENING ──▶ VHOST ──▶ RUNNING
                                         │           │                    │
                                         └───────────┴──── close ─────────┴──▶ ENDING ──▶ CLOSED

LOGIN ── the broker's challenge ──▶ SECURING ── secure-ok ──▶ LOGIN

any state ── fault ──▶ ENDING ── the broker's close ──▶ CLOSING ── close-ok ──▶ CLOSED

LOGIN, VHOST and ENDING wait for the broker, the others for the peer. In LOGIN and VHOST input is held;
in ENDING, CLOSING and CLOSED it is discarded, except for the peer's close and close-ok.
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


class ConnectionState(Enum):
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


TRANSITIONS: Final[dict[ConnectionState, dict[type[Method], ConnectionState]]] = {
    ConnectionState.STARTING: {ConnectionStartOk: ConnectionState.LOGIN},
    ConnectionState.SECURING: {ConnectionSecureOk: ConnectionState.LOGIN},
    ConnectionState.TUNING: {ConnectionTuneOk: ConnectionState.OPENING, ConnectionClose: ConnectionState.ENDING},
    ConnectionState.OPENING: {ConnectionOpen: ConnectionState.VHOST, ConnectionClose: ConnectionState.ENDING},
    ConnectionState.RUNNING: {ConnectionUpdateSecret: ConnectionState.RUNNING, ConnectionClose: ConnectionState.ENDING},
    ConnectionState.ENDING: {ConnectionClose: ConnectionState.ENDING},
    ConnectionState.CLOSING: {ConnectionClose: ConnectionState.CLOSING, ConnectionCloseOk: ConnectionState.CLOSED},
}
"""The next state for a method on channel 0. Other methods are discarded in the states of OVER, and a fault in the
others."""

HANDSHAKE: Final = frozenset(
    {ConnectionState.STARTING, ConnectionState.SECURING, ConnectionState.TUNING, ConnectionState.OPENING}
)
"""The peer has to send the next method, and only methods of the class connection are allowed."""
OVER: Final = frozenset({ConnectionState.ENDING, ConnectionState.CLOSING, ConnectionState.CLOSED})
"""Input is ignored, except for close and close-ok."""
