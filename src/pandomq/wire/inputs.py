"""What a connection's bytes mean to the broker, in the order in which they arrived.

Methods on channels other than 0 come as `MethodInput`, publishes and settlements as the kernel's runs, untouched.
"""

from typing import Any, NamedTuple

from pandomq.errors import ConnectionFault
from pandomq.ids import UserName, VhostName
from pandomq.kernel import PublishRun, SettleRun
from pandomq.methods import MethodInput


class Misgreeted(NamedTuple):
    """Somebody who speaks something else; it has been told what is spoken here. Wants no answer."""

    greeting: bytes


class Login(NamedTuple):
    """Somebody wants to be let in: answer with accept_login or refuse_login."""

    mechanism: str
    user: UserName
    password: bytes
    client_properties: dict[str, Any]


class Secured(NamedTuple):
    """The answer to a challenge: challenge again, or answer with accept_login or refuse_login."""

    response: bytes


class OpenVhost(NamedTuple):
    """Somebody who is logged in chose a vhost: answer with accept_vhost or close."""

    vhost: VhostName


class UpdateSecret(NamedTuple):
    """A new secret for who is logged in: answer with ConnectionUpdateSecretOk on channel 0, or close."""

    secret: bytes
    reason: str


class PeerClosed(NamedTuple):
    """The peer said good-bye; nothing follows. Answer with confirm_close."""

    reply_code: int
    reply_text: str


class Faulted(NamedTuple):
    """The peer broke the protocol; nothing follows. Answer with close."""

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
