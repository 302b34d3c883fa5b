"""The inputs that a connection's bytes contain for the broker, in the order of arrival.

Methods on channels other than 0 come as `MethodInput`, publishes and settlements as the kernel's runs, unchanged.
"""

from typing import Any, NamedTuple

from pandomq.errors import ConnectionFault
from pandomq.ids import UserName, VhostName
from pandomq.kernel import PublishRun, SettleRun
from pandomq.methods import MethodInput


class Misgreeted(NamedTuple):
    """A client of another protocol; it has been sent the supported one. Needs no answer."""

    greeting: bytes


class Login(NamedTuple):
    """A client logs in: answer with accept_login or refuse_login."""

    mechanism: str
    user: UserName
    password: bytes
    client_properties: dict[str, Any]


class Secured(NamedTuple):
    """The client's answer to a challenge: challenge again, or answer with accept_login or refuse_login."""

    response: bytes


class OpenVhost(NamedTuple):
    """A client that is logged in chose a vhost: answer with accept_vhost or close."""

    vhost: VhostName


class UpdateSecret(NamedTuple):
    """A new secret for the logged-in user: answer with ConnectionUpdateSecretOk on channel 0, or close."""

    secret: bytes
    reason: str


class PeerClosed(NamedTuple):
    """The peer closed the connection; nothing follows. Answer with confirm_close."""

    reply_code: int
    reply_text: str


class Faulted(NamedTuple):
    """The peer violated the protocol; nothing follows. Answer with close."""

    fault: ConnectionFault


Input = (
    Misgreeted
    | Login
    | Secured
    | OpenVhost
    | MethodInput
    | UpdateSecret
    | PeerClosed
    | Faulted
    | PublishRun
    | SettleRun
)
