"""Handles unexpected exceptions: they affect only the client whose input raised them.

If the state is as it was before the input, that client is closed (541), and all others continue. If the state has
changed, it may differ from the log: then StateInDoubt is raised, and the broker must not be used any more. Its owner
makes another one from the log. Nothing of the batch was proposed, so nothing of it is ever confirmed. The broker treats
an exception in the same way if it was raised while it published staged messages: these are no client's input
(`staging.expansion` bounds how often).
"""

from typing import TYPE_CHECKING, Final

from pandomq.errors import ConnectionFault, internal_error

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client

CAUGHT_MAX: Final = 100
"""Exceptions that are kept until the owner takes them; it does so after each batch."""


class StateInDoubt(Exception):
    """State may differ from the log. The cause is the exception that was raised."""

    def __init__(self, client: "Client | None" = None) -> None:
        super().__init__("an unexpected exception was raised after state had changed")
        self.client = client
        """The client whose input it was; None if there is none."""


class Containment:
    __slots__ = ("_broker", "caught")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.caught: list[tuple[Client | None, Exception]] = []
        """The clients and exceptions since the last `take`."""

    def close(self, client: "Client", error: Exception, changes: int) -> None:
        """The client's input raised this exception; `changes` are the broker's before the input. Raises
        StateInDoubt."""
        self.close_in_run(client, error, changes)
        try:
            self._broker.faults.finish()
        except Exception as second:
            raise StateInDoubt(client) from second

    def close_in_run(self, client: "Client", error: Exception, changes: int) -> None:
        """Like `close`, in the middle of a run: the client's objects are removed after the run."""
        if client not in self._broker.clients:
            # The broker publishes what it has taken out of its own state (`staging`), and no client would learn that a
            # message was left out.
            raise StateInDoubt from error
        self.note(error, changes, client)
        self._broker.faults.close_client(client, internal_failure())

    def note(self, error: Exception, changes: int, client: "Client | None" = None) -> None:
        """The request came from no client, and its sender has the error. Raises StateInDoubt."""
        if isinstance(error, StateInDoubt):
            raise error
        if self._broker.changes != changes:
            raise StateInDoubt(client) from error
        if len(self.caught) < CAUGHT_MAX:
            self.caught.append((client, error))

    def take(self) -> "list[tuple[Client | None, Exception]]":
        caught, self.caught = self.caught, []
        return caught


def internal_failure() -> ConnectionFault:
    return internal_error(
        "the broker failed to process this request: its log has the traceback. Nothing of the request was carried out"
    )
