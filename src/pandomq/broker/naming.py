"""Names: those that the broker makes, and those that clients may give to what they declare.

Made ones hold 128 bits of the injected chance, so nobody can guess another's and none comes twice.
"""

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from pandomq.errors import access_refused

if TYPE_CHECKING:
    from random import Random


class NameMaker:
    __slots__ = ("_random",)

    def __init__(self, random: "Random") -> None:
        self._random = random

    def token(self) -> str:
        return urlsafe_b64encode(self._random.getrandbits(128).to_bytes(16, "big")).decode("ascii").rstrip("=")

    def queue(self, prefix: str = "amq.gen") -> str:
        return f"{prefix}-{self.token()}"

    def consumer_tag(self) -> str:
        return f"amq.ctag-{self.token()}"


def check_not_default(exchange: str) -> None:
    """Raises ChannelFault (403): the bindings of the default exchange cannot be changed."""
    if not exchange:
        raise access_refused("operation not permitted on the default exchange")


def check_not_reserved(kind: str, name: str) -> None:
    """For a new name. Raises ChannelFault (403)."""
    if name.startswith("amq."):
        raise access_refused(f"{kind} name '{name}' contains reserved prefix 'amq.*'")


def without_line_ends(name: str) -> str:
    """RabbitMQ removes line ends."""
    return name.replace("\n", "").replace("\r", "") if "\n" in name or "\r" in name else name
