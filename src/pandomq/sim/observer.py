"""Looks at all that brokers write and tells the checkers, in terms of messages and queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pandomq.journal.faults import StoreFault
from pandomq.methods import BasicDeliver, BasicGetOk
from pandomq.sim.cable import Cable
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.clients.client import Client
from pandomq.sim.files import Loss
from pandomq.sim.frames import Heard
from pandomq.sim.ledger import Delivery, Ledger, Message, Transaction

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine


class Observer:
    def __init__(self, ledger: Ledger, checkers: Sequence[Checker]) -> None:
        self._ledger = ledger
        self.checkers = checkers
        # Few of them look at every step.
        self._stepping = [checker for checker in checkers if type(checker).stepped is not Checker.stepped]
        self.on_opened: Callable[[Machine], None] = lambda machine: None
        self.on_ended: Callable[[Machine, StoreFault | None], None] = lambda machine, fault: None

    # Of machines.

    def emitted(self, cable: Cable, methods: list[Heard]) -> None:
        client = cable.client
        assert isinstance(client, Client)
        if client.subscribes:
            return
        for _, method, body, _ in methods:
            if isinstance(method, BasicDeliver):
                queue, asked = method.consumer_tag, False
            elif isinstance(method, BasicGetOk):
                queue, asked = client.get_queue(), True
            else:
                continue
            message = self._ledger.message_of(body)
            delivery = Delivery(message, queue, method.redelivered, asked, cable)
            for checker in self.checkers:
                checker.emitted(delivery, cable.machine)
            self._delivered(client, queue, message, cable)

    def _delivered(self, client: Client, queue: str, message: Message, cable: Cable) -> None:
        # The life that counts is the root's, which is known only where the root itself speaks.
        self._ledger.emitted.setdefault((queue, message), 0 if cable.proxied else cable.machine.life)
        if client.no_ack:
            self._ledger.settle((queue, message))

    def stepped(self, machine: Machine) -> None:
        for checker in self._stepping:
            if not machine.secondary or checker.looks_everywhere:
                checker.stepped(machine)

    def opened(self, machine: Machine) -> None:
        for checker in self.checkers:
            checker.opened(machine)
        self.on_opened(machine)

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        if machine.last_loss is not Loss.NONE and not machine.secondary:
            self._ledger.losses_ms.append(machine.world_ms)
        self.left(machine)
        self.on_ended(machine, fault)

    def left(self, machine: Machine) -> None:
        if machine.secondary:
            # It had nothing that anybody was promised.
            return
        self._ledger.ends_ms.append(machine.world_ms)
        for checker in self.checkers:
            checker.ended(machine)

    # Of clients.

    def published(self, message: Message) -> None:
        for checker in self.checkers:
            checker.published(message)

    def confirmed(self, message: Message, cable: Cable) -> None:
        machine = cable.machine
        message.confirmed = True
        message.confirmed_life = 0 if cable.proxied else machine.life
        message.confirmed_ms = machine.world_ms
        for checker in self.checkers:
            checker.confirmed(message, machine)

    def confirmed_at_root(self, message: Message) -> None:
        """By a commit of a staged batch."""
        message.confirmed = True

    def refused(self, message: Message, cable: Cable) -> None:
        # Who asks a new root again may be refused what the last one has taken.
        message.refused = not cable.proxied
        for checker in self.checkers:
            checker.refused(message)

    def committed(self, transaction: Transaction) -> None:
        for checker in self.checkers:
            checker.committed(transaction)

    def finished(self, machine: Machine) -> None:
        for checker in self.checkers:
            checker.finished(machine)
