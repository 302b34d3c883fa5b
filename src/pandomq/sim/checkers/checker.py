"""The events that a checker may observe. It raises BrokenPromise as soon as it sees a violation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.sim.ledger import ClientTransaction, Delivery, SentMessage, WorldLedger
    from pandomq.sim.machine import Machine


class Checker:
    looks_everywhere = False
    """Whether the checker also inspects the steps of secondaries."""

    def __init__(self, ledger: WorldLedger) -> None:
        self.ledger = ledger

    def published(self, message: SentMessage) -> None: ...

    def confirmed(self, message: SentMessage, machine: Machine) -> None:
        """The broker wrote the confirm."""

    def refused(self, message: SentMessage) -> None: ...

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        """The broker wrote a delivery; the ledger does not have it yet."""

    def committed(self, transaction: ClientTransaction) -> None: ...

    def stepped(self, machine: Machine) -> None: ...

    def opened(self, machine: Machine) -> None: ...

    def ended(self, machine: Machine) -> None: ...

    def finished(self, machine: Machine) -> None:
        """The faults have ended, every client has received its answers, and the queues have been emptied."""
