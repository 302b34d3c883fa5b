"""Who may do what: the one place where permissions are asked for.

For now everybody who logged in may do everything.
"""

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from pandomq.errors import access_refused

if TYPE_CHECKING:
    from pandomq.broker.client import Client


class Right(Enum):
    CONFIGURE = "configure"
    WRITE = "write"
    READ = "read"


class Permissions(Protocol):
    def allow(self, user: str, vhost: str, right: Right, name: str) -> bool: ...


class Everything:
    """Allows it."""

    def allow(self, user: str, vhost: str, right: Right, name: str) -> bool:
        return True


def demand(client: "Client", right: Right, kind: str, name: str) -> None:
    """Raises ChannelFault (403) unless the client's user has this right on the queue or exchange."""
    vhost = client.vhost.name
    if not client.broker.permissions.allow(client.user, vhost, right, name):
        raise access_refused(
            f"{right.value} access to {kind} '{name}' in vhost '{vhost}' refused for user '{client.user}'"
        )
