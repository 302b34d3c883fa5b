"""What connections have sent of messages that are not whole yet, all of them together.

One connection's are bounded by `wire`; this bounds the sum, which thousands of connections could otherwise drive beyond
all memory. Who has the most is closed: it takes as many hostile connections as there are honest ones to get at one of
those. Nobody is held back for it, since whoever is not read from could never complete its message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.errors import ConnectionFault, resource_error
from pandomq.limits import INCOMPLETE_MEMORY_PARTS, INCOMPLETE_MESSAGES_MAX

if TYPE_CHECKING:
    from pandomq.node.link import Link
    from pandomq.node.settings import NodeSettings


class IncompleteMessages:
    """Counts of a frame and less are left out: every connection may have that much, as most do after a read."""

    __slots__ = ("_bytes_max", "_bytes_of", "total_bytes")

    def __init__(self, settings: NodeSettings) -> None:
        self._bytes_of: dict[Link, int] = {}
        self.total_bytes = 0
        self.change_settings(settings)

    def change_settings(self, settings: NodeSettings) -> None:
        of_one = INCOMPLETE_MESSAGES_MAX * (settings.message_bytes_max + settings.frame_bytes_max)
        self._bytes_max = max(of_one, settings.memory_bytes_max // INCOMPLETE_MEMORY_PARTS)

    def received(self, link: Link) -> Link | None:
        """To be told after each read; the connection that has to go for it, if one has."""
        count = link.connection.incomplete_bytes
        if count <= link.connection.agreed.frame_max:
            count = 0
        before = self._bytes_of.get(link, 0)
        if count == before:
            return None
        self.total_bytes += count - before
        if count:
            self._bytes_of[link] = count
        else:
            del self._bytes_of[link]
        if count < before or self.total_bytes <= self._bytes_max:
            return None
        return max(self._bytes_of, key=self._bytes_of.__getitem__)

    def forget(self, link: Link) -> None:
        self.total_bytes -= self._bytes_of.pop(link, 0)

    @property
    def fault(self) -> ConnectionFault:
        return resource_error(f"incomplete messages of all connections take more than {self._bytes_max} bytes")
