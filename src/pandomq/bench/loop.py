"""A small event loop: level-triggered epoll over endpoints that read and write their own sockets."""

import select
from typing import Protocol

_COARSE_WAIT_S = 0.005
_SELECT_DESCRIPTOR_END = 1024
"""A select accepts no descriptor from here on; then waits are coarse."""


class PolledSocket(Protocol):
    @property
    def wants_write(self) -> bool: ...

    def fileno(self) -> int: ...

    def readable(self) -> None: ...

    def writable(self) -> None: ...


class Loop:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._endpoints: dict[int, PolledSocket] = {}
        self._writing: dict[int, bool] = {}

    def add(self, endpoint: PolledSocket) -> None:
        descriptor = endpoint.fileno()
        self._endpoints[descriptor] = endpoint
        self._writing[descriptor] = endpoint.wants_write
        self._epoll.register(descriptor, _interest(endpoint.wants_write))

    def remove(self, endpoint: PolledSocket) -> None:
        descriptor = endpoint.fileno()
        self._epoll.unregister(descriptor)
        del self._endpoints[descriptor], self._writing[descriptor]

    def refresh(self, endpoint: PolledSocket) -> None:
        """Checks again whether an endpoint wants to write; needed when something other than its socket changed that."""
        descriptor, wanted = endpoint.fileno(), endpoint.wants_write
        if self._writing.get(descriptor, wanted) != wanted:
            self._writing[descriptor] = wanted
            self._epoll.modify(descriptor, _interest(wanted))

    def turn(self, wait_s: float) -> None:
        """Waits for readiness at most this long, and lets every ready endpoint work once."""
        if wait_s < _COARSE_WAIT_S and self._epoll.fileno() < _SELECT_DESCRIPTOR_END:
            # An epoll wait is rounded up to whole milliseconds; a select on the epoll descriptor is not.
            select.select([self._epoll], [], [], max(wait_s, 0))
            wait_s = 0
        for descriptor, events in self._epoll.poll(max(wait_s, 0)):
            endpoint = self._endpoints.get(descriptor)
            if endpoint is None:
                continue
            if events & ~select.EPOLLOUT:
                endpoint.readable()
            if events & select.EPOLLOUT:
                endpoint.writable()
            if descriptor in self._endpoints:
                self.refresh(endpoint)

    def close(self) -> None:
        self._epoll.close()


def _interest(writing: bool) -> int:
    return select.EPOLLIN | select.EPOLLOUT if writing else select.EPOLLIN
