"""What clients share: the time, the seed's chance, the way to the broker, and who writes down what they do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from pandomq.sim.agenda import Agenda
from pandomq.sim.cable import Cable
from pandomq.sim.ledger import Ledger
from pandomq.sim.trace import Trace

if TYPE_CHECKING:
    from pandomq.sim.clients.client import Client
    from pandomq.sim.machine import Machine
    from pandomq.sim.observer import Observer


class Scene:
    def __init__(self, agenda: Agenda, trace: Trace, random: Random, ledger: Ledger, observer: Observer) -> None:
        self.agenda = agenda
        self.trace = trace
        self.random = random
        self.ledger = ledger
        self.observer = observer
        self.machines: list[Machine] = []
        self.secondaries: list[Machine] = []
        self.proxied = False
        """Any broker serves, in the root's name if it is not the root."""
        self.ending = False
        """The faults are over; who has had what it wanted begins nothing new."""
        self.on_tempted: Callable[[], None] = lambda: None
        """Told when a client asks for what a crash would undo in a way that somebody might see."""
        self._ports = 10_000

    def here_and_now(self, cable: Cable) -> tuple[int, int]:
        """The root's life, and what time it is for it; zeros if that is not known."""
        if not cable.proxied:
            return cable.machine.life, cable.machine.broker_ms
        return 0, next((machine.broker_ms for machine in self.machines if machine.serving), 0)

    def dial(self, client: Client) -> Cable | None:
        """To the broker that is said to be the root, or to any; None if nobody takes clients."""
        accepting = [machine for machine in (*self.machines, *self.secondaries) if machine.accepting]
        if not accepting:
            return None
        sent = client.wants_root or not self.proxied
        named = [machine for machine in accepting if machine.name == client.root and sent]
        machine = (named or accepting)[0] if named or len(accepting) == 1 else self.random.choice(accepting)
        self._ports += 1
        window_bytes = client.random.choice((2_000, 100_000, 1_000_000))
        latency_ms = client.random.choice((0, 0, 1, 1, 2, 7))
        cable = Cable(self.agenda, self.random, machine, client, latency_ms, window_bytes)
        machine.connect(cable, self._ports)
        return cable
