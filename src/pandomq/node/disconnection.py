"""Disconnects all clients, because the broker ends or restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.errors import connection_forced
from pandomq.node.output import Abort
from pandomq.wire.states import ConnectionState

if TYPE_CHECKING:
    from pandomq.errors import ConnectionFault
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.clients.closing import ClosingConnections
    from pandomq.node.clients.local_client import LocalClients
    from pandomq.node.data.sessions import DataSessions
    from pandomq.node.output import Writes
    from pandomq.node.service_state import ServiceState


class Disconnection:
    __slots__ = ("_closing", "_data", "_links", "_local_clients", "_service_state")

    def __init__(
        self,
        links: ClientLinks,
        closing: ClosingConnections,
        local_clients: LocalClients,
        service_state: ServiceState,
        data: DataSessions,
    ) -> None:
        self._data = data
        self._links = links
        self._closing = closing
        self._local_clients = local_clients
        self._service_state = service_state

    def shut_down(self, now_ms: int) -> None:
        """Ends the connections of all clients: each gets connection.close with the next step, and is disconnected when
        it answers."""
        for link in list(self._links.present):
            if link.connection.state is ConnectionState.RUNNING:
                fault = connection_forced("broker forced connection closure with reason 'shutdown'")
                self._closing.add(link, fault)
            else:
                self._links.controls.append(Abort(link))
                self._links.forget(link, now_ms)
        self._data.close_all("this broker is stopping")

    def close_all(self, reason: str, writes: Writes, now_ms: int) -> ConnectionFault:
        """Drops all clients because this node ends. Output that was not sent by now is never sent."""
        fault = self._service_state.closing_fault(reason)
        self._links.close_all(fault, writes, now_ms)
        self._local_clients.close_all(fault)
        self._data.close_all(fault.reply_text)
        return fault
