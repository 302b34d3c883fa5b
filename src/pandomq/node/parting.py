"""How clients are told to go: all of them, because the broker ends or begins again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.errors import connection_forced
from pandomq.node.output import Abort
from pandomq.wire.states import State

if TYPE_CHECKING:
    from pandomq.errors import ConnectionFault
    from pandomq.node.data.desk import DataDesk
    from pandomq.node.endings import Endings
    from pandomq.node.links import Links, Writes
    from pandomq.node.local_client import LocalClients
    from pandomq.node.office import Office


class Parting:
    __slots__ = ("_data", "_endings", "_links", "_local_clients", "_office")

    def __init__(
        self, links: Links, endings: Endings, local_clients: LocalClients, office: Office, data: DataDesk
    ) -> None:
        self._data = data
        self._links = links
        self._endings = endings
        self._local_clients = local_clients
        self._office = office

    def shut_down(self, now_ms: int) -> None:
        """They are told with the next step, and go as they answer."""
        for link in list(self._links.present):
            if link.connection.state is State.RUNNING:
                fault = connection_forced("broker forced connection closure with reason 'shutdown'")
                self._endings.add(link, fault)
            else:
                self._links.controls.append(Abort(link))
                self._links.forget(link, now_ms)
        self._data.part("this broker is stopping")

    def leave(self, reason: str, writes: Writes, now_ms: int) -> ConnectionFault:
        """The end of this life: what was not said by now is never said."""
        self._office.opened = False
        fault = self._office.farewell(reason)
        self._links.part(fault, writes, now_ms)
        self._local_clients.part(fault)
        self._data.part(fault.reply_text)
        return fault
