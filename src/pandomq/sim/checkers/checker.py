"""What a checker may look at. It raises BrokenPromise as soon as it sees one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.sim.ledger import Delivery, Ledger, Message, Transaction
    from pandomq.sim.machine import Machine


class Checker:
    looks_everywhere = False
    """At the steps of secondaries, too."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def published(self, message: Message) -> None: ...

    def confirmed(self, message: Message, machine: Machine) -> None:
        """The broker wrote the confirm."""

    def refused(self, message: Message) -> None: ...

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        """The broker wrote a delivery; before the ledger knows of it."""

    def committed(self, transaction: Transaction) -> None: ...

    def stepped(self, machine: Machine) -> None: ...

    def opened(self, machine: Machine) -> None: ...

    def ended(self, machine: Machine) -> None: ...

    def finished(self, machine: Machine) -> None:
        """The faults have ended, everybody has had what they waited for, the queues have been emptied."""
