"""A message that a client holds is not sent to another client by the same process of a broker (P3).

A client whose connection the broker is closing holds nothing: after an exception the broker closes the connection
before the client knows. The checker considers clients of the root only. The root takes back what it has sent to another
broker's clients when its connection to that broker breaks, and those clients are not notified (ADR 13).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.mixed_consumer import MixedConsumer
from pandomq.sim.ledger import BrokenPromise, Delivery, Place, WorldLedger
from pandomq.sim.machine import Machine
from pandomq.sim.network.cable import Cable

PROMISE: Final = "one client at a time holds a message"


class OneHolder(Checker):
    def __init__(self, ledger: WorldLedger) -> None:
        super().__init__(ledger)
        self._holders: dict[Place, Cable] = {}

    def gave_back(self, places: Iterable[Place]) -> None:
        """The client is about to settle these deliveries."""
        for place in places:
            self._holders.pop(place, None)

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        holder = self._holders.pop(delivery.place, None)
        if holder is not None and self._holds(holder, machine):
            raise BrokenPromise(PROMISE, f"{delivery.message} of {delivery.queue} is still with {holder.client.name}")
        cable = delivery.connection
        assert isinstance(cable, Cable)
        if isinstance(cable.client, MixedConsumer) and not cable.proxied:
            self._holders[delivery.place] = cable

    @staticmethod
    def _holds(cable: Cable, machine: Machine) -> bool:
        client = cable.client
        assert isinstance(client, SimulatedClient)
        return (
            cable.is_served
            and cable.life == machine.life
            and cable.at_machine
            and cable.at_client
            and not client.leaving
        )
