"""Handles unexpected exceptions in the node: it closes one client, or requests a restart of the broker's state.

While the node reads what a client sent, nothing that other clients rely on changes: the node closes that client (541).
While it handles a batch, the broker decides (`broker.containment`). Anywhere else, and wherever state may differ from
the log, the node requests a restart with its next step, and the runtime makes another node from the log. The client
whose input raised the exception receives 541, so that neither it nor the broker that serves it repeats the request.

Each call by which the runtime or the HTTP API enters the node outside of a step is guarded here: by `contained`, by
`Guard.tell`, or by the entry point itself if the exception belongs to one client.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec

from pandomq.broker.containment import StateInDoubt, internal_failure
from pandomq.cluster.dialed_connection import Dialed
from pandomq.journal.faults import StoreFault
from pandomq.node.clients.closing import for_client
from pandomq.node.output import Abort, Output

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.clients.closing import ClosingConnections
    from pandomq.node.clients.local_client import LocalClients
    from pandomq.node.output import AnyLink, Writes

log = logging.getLogger("pandomq")

ERRORS_KEPT_MAX: Final = 100
DOUBT: Final = "an unexpected exception; the broker's log has its traceback"

P = ParamSpec("P")
Step = Callable[[int, int | None], Output]
EndLife = Callable[[str, "Writes", int], Output]
"""Sends the reason to all links; returns the last output of this node."""


class LifeOver(Exception):
    """A broker without a log cannot restart its state, and cannot continue."""


class Guard:
    __slots__ = ("_brokers", "_closing", "_culprit", "_links", "_local_clients", "errors", "in_doubt")

    def __init__(
        self, brokers: list[Broker], links: ClientLinks, closing: ClosingConnections, local_clients: LocalClients
    ) -> None:
        self._brokers = brokers
        self._links = links
        self._closing = closing
        self._local_clients = local_clients
        self._culprit: Client | None = None
        self.in_doubt = False
        """Whether this node ends with the next step."""
        self.errors: list[Exception] = []
        """The last ones, for diagnosis."""

    @property
    def changes(self) -> int:
        changes = 0
        for broker in self._brokers:
            changes += broker.commands_changed + broker.engine.changes
        return changes

    def read(self, link: AnyLink, data: memoryview, now_ms: int) -> None:
        """Has the owner of the link handle bytes that came over it."""
        changes = 0
        try:
            # This does the same as `changes`, without a call, since it runs for each read.
            for broker in self._brokers:
                changes += broker.commands_changed + broker.engine.changes
            link.owner.receive(link, data, now_ms)
        except Exception as error:
            self._read_failed(link, error, changes)

    def _read_failed(self, link: AnyLink, error: Exception, changes: int) -> None:
        if self.changes != changes or isinstance(link, Dialed) or link.hello is not None:
            self.doubt(error)
            return
        self._note(error, f"input from {link.peer_name}")
        if not link.read_failed:
            link.read_failed = True
            self._closing.add_first(link, for_client(link, internal_failure()))

    def request_failed(self, error: Exception, changes: int) -> None:
        """Outside of a step, a request of one client failed, and its caller reports that to the client; `changes` were
        counted before."""
        if isinstance(error, StateInDoubt) or self.changes != changes:
            self.doubt(error)
        else:
            self._note(error, "a client's request")

    def tell(self, listener: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Reports an outside event to a part of the node. Raises StoreFault."""
        try:
            listener(*args, **kwargs)
        except StoreFault:
            raise
        except Exception as error:
            self.doubt(error)

    def look(self) -> None:
        """To be called after a batch: logs the exceptions for which the brokers closed clients."""
        for broker in self._brokers:
            if broker.containment.caught:
                for client, error in broker.containment.take():
                    self._note(error, _name(client))

    def doubt(self, error: Exception) -> None:
        if isinstance(error, StateInDoubt):
            self._culprit = error.client
            cause = error.__cause__
            error = cause if isinstance(cause, Exception) else error
        self._note(error, _name(self._culprit))
        self.in_doubt = True

    def run(self, step: Step, end_life: EndLife | None, now_ms: int, monotonic_ms: int | None) -> Output:
        """Runs one step. Without `end_life` there is no log to restart from. Raises StoreFault and LifeOver."""
        if not self.in_doubt:
            try:
                output = step(now_ms, monotonic_ms)
                # An entry point that was called within the step may have failed: then none of the step's output may go
                # out.
                if not self.in_doubt:
                    return output
            except StoreFault:
                raise
            except Exception as error:
                self.doubt(error)
        if end_life is None:
            raise LifeOver(DOUBT)
        try:
            writes: Writes = []
            self._close_culprit(writes, now_ms)
            return end_life(DOUBT, writes, now_ms)
        except Exception as error:
            self.doubt(error)
            # The clients cannot be notified: their sockets are closed.
            return Output([], [Abort(link) for link in self._links.present], False, (), DOUBT)

    def _close_culprit(self, writes: Writes, now_ms: int) -> None:
        """Closes the connection of the client whose input raised the exception, before all other links get notice of
        the restart."""
        culprit, fault = self._culprit, internal_failure()
        if culprit is None:
            return
        link = self._links.of_client.get(culprit)
        if link is None:
            self._local_clients.failed(culprit, fault)
            return
        link.connection.close(for_client(link, fault), now_ms)
        octets = link.connection.data_to_send()
        if octets:
            writes.append((link, octets))

    def _note(self, error: Exception, where: str) -> None:
        log.error("unexpected exception while handling %s", where, exc_info=error)
        if len(self.errors) < ERRORS_KEPT_MAX:
            self.errors.append(error)


def _name(client: Client | None) -> str:
    return "an internal event" if client is None else f"input from {client.peer} (user '{client.user}')"


def contained(method: Callable[P, None]) -> Callable[P, None]:
    """A method of an object that has a `guard`: after an unexpected exception the node asks for a restart with its next
    step."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        owner: Any = args[0]
        owner.guard.tell(method, *args, **kwargs)

    return call
