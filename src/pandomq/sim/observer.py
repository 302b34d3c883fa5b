"""Observes everything that brokers write, and reports it to the checkers in terms of messages and queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pandomq.journal.faults import StoreFault
from pandomq.methods import BasicDeliver, BasicGetOk
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.disks.files import Loss
from pandomq.sim.ledger import ClientTransaction, Delivery, SentMessage, WorldLedger
from pandomq.sim.network.cable import Cable
from pandomq.sim.network.frames import Heard

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine


class WorldObserver:
    def __init__(self, ledger: WorldLedger) -> None:
        self._ledger = ledger
        self.checkers: Sequence[Checker] = ()
        # Few checkers inspect the events that happen often.
        self._emitting: Sequence[Checker] = ()
        self._publishing: Sequence[Checker] = ()
        self._confirming: Sequence[Checker] = ()
        self._stepping: Sequence[Checker] = ()
        self._stepping_everywhere: Sequence[Checker] = ()
        self.on_opened: Callable[[Machine], None] = lambda machine: None
        self.on_ended: Callable[[Machine, StoreFault | None], None] = lambda machine, fault: None

    def watch_with(self, checkers: Sequence[Checker]) -> None:
        self.checkers = checkers
        self._emitting = [checker for checker in checkers if type(checker).emitted is not Checker.emitted]
        self._publishing = [checker for checker in checkers if type(checker).published is not Checker.published]
        self._confirming = [checker for checker in checkers if type(checker).confirmed is not Checker.confirmed]
        self._stepping = [checker for checker in checkers if type(checker).stepped is not Checker.stepped]
        self._stepping_everywhere = [checker for checker in self._stepping if checker.looks_everywhere]

    # Events of machines.

    def emitted(self, cable: Cable, methods: list[Heard]) -> None:
        client = cable.client
        assert isinstance(client, SimulatedClient)
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
            for checker in self._emitting:
                checker.emitted(delivery, cable.machine)
            self._delivered(client, queue, message, cable)

    def _delivered(self, client: SimulatedClient, queue: str, message: SentMessage, cable: Cable) -> None:
        # The life that counts is the root's, which is known only if the root itself wrote the delivery.
        self._ledger.emitted.setdefault((queue, message), 0 if cable.proxied else cable.machine.life)
        if client.no_ack:
            self._ledger.settle((queue, message))

    def stepped(self, machine: Machine) -> None:
        if machine.serving and machine.node is not None and not machine.node.broker.replicated:
            term = machine.node.broker.engine.term
            self._ledger.alone_since = min(term, self._ledger.alone_since or term)
        for checker in self._stepping_everywhere if machine.secondary else self._stepping:
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

    def injected(self) -> None:
        self._ledger.injected += 1

    def left(self, machine: Machine) -> None:
        if machine.secondary:
            # The store held nothing that any client was promised.
            return
        self._ledger.ends_ms.append(machine.world_ms)
        for checker in self.checkers:
            checker.ended(machine)

    # Events of clients.

    def published(self, message: SentMessage) -> None:
        for checker in self._publishing:
            checker.published(message)

    def confirmed(self, message: SentMessage, cable: Cable) -> None:
        machine = cable.machine
        message.confirmed = True
        # The life that wrote the confirm: the broker may have restarted its state while the confirm was under way.
        message.confirmed_life = 0 if cable.proxied else cable.life
        message.confirmed_ms = machine.world_ms
        for checker in self._confirming:
            checker.confirmed(message, machine)

    def confirmed_at_root(self, message: SentMessage) -> None:
        """A commit of a staged batch confirmed the message."""
        message.confirmed = True

    def refused(self, message: SentMessage, cable: Cable) -> None:
        # A client that repeats its request to a new root may be refused although the previous root accepted it.
        message.refused = not cable.proxied
        for checker in self.checkers:
            checker.refused(message)

    def committed(self, transaction: ClientTransaction) -> None:
        for checker in self.checkers:
            checker.committed(transaction)

    def finished(self, machine: Machine) -> None:
        for checker in self.checkers:
            checker.finished(machine)
