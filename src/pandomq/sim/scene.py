"""The state that clients share: the time, the seed, the way to the broker, and the ledger of their actions."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.sim.agenda import Agenda
from pandomq.sim.campaigns.reduction import Reduction
from pandomq.sim.ledger import WorldLedger
from pandomq.sim.network.cable import Cable
from pandomq.sim.trace import WorldTrace

if TYPE_CHECKING:
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.machine import Machine
    from pandomq.sim.observer import WorldObserver


PATIENCE_MS: Final = 60
"""The longest delay until a client connects after a broker has begun to serve."""
ROOT_PATIENCE_MS: Final = 1_000
"""The longest delay until a refused client connects again while no broker serves."""


class Scene:
    def __init__(
        self,
        agenda: Agenda,
        trace: WorldTrace,
        random: Random,
        ledger: WorldLedger,
        observer: WorldObserver,
        reduction: Reduction | None = None,
    ) -> None:
        self.agenda = agenda
        self.trace = trace
        self._seed = random.getrandbits(64)
        self.reduction = reduction or Reduction()
        """The part of the world that takes part."""
        self.machine_names: list[str] = []
        """The names of the machines that faults may choose, including machines that the reduction left out."""
        self.ledger = ledger
        self.observer = observer
        self.machines: list[Machine] = []
        self.secondaries: list[Machine] = []
        self.proxied = False
        """Any broker serves; those that are not the root do so as fronts."""
        self.ending = False
        """The faults are over; a client that has received everything it waited for begins nothing new."""
        self.on_tempted: Callable[[], None] = lambda: None
        """Called when a client requests something whose loss in a crash would be visible."""
        self.on_damage: Callable[[Machine], None] = lambda _: None
        """Called when a client finds a damaged chunk of this broker. Brokers send chunks without reading them (ADR 16),
        and clients check them."""
        self._ports = 10_000
        self._awaiting_root: dict[SimulatedClient, tuple[int, int]] = {}
        """Clients that were refused by a broker that knows no root, each with the number of the wait and the time at
        which it may end."""
        self._attempts = 0

    def random_of(self, name: str) -> Random:
        """Returns a random stream that depends on the seed and the name alone: draws from other streams do not change
        it."""
        return Random(f"{self._seed} {name}")

    def here_and_now(self, cable: Cable) -> tuple[int, int]:
        """Returns the root's life and the time by its clock; zeros if they are not known."""
        if not cable.proxied:
            return cable.machine.life, cable.machine.broker_ms
        return 0, next((machine.broker_ms for machine in self.machines if machine.serving), 0)

    @property
    def moving_ms(self) -> int:
        """The world's time without the standstills, in which requests under way stood still, too."""
        return self.agenda.now_ms - self.ledger.leapt_ms

    def await_root(self, client: SimulatedClient, rest_ms: int = 0) -> None:
        """A broker refused the client and knows no root. While no broker serves, the client connects again after a long
        delay, or a short time after a broker begins to serve, whichever comes first; it waits at least `rest_ms`."""
        serves = any(machine.serving for machine in self.machines)
        patience_ms = PATIENCE_MS if serves else ROOT_PATIENCE_MS
        self._attempts += 1
        attempt = self._attempts
        self._awaiting_root[client] = (attempt, self.agenda.now_ms + rest_ms)
        self._connect_again(client, attempt, self.agenda.now_ms + rest_ms + client.random.randint(1, patience_ms))

    def root_serves(self) -> None:
        """A broker has begun to serve."""
        for client, (attempt, earliest_ms) in self._awaiting_root.items():
            delay_ms = client.random.randint(1, PATIENCE_MS)
            self._connect_again(client, attempt, max(earliest_ms, self.agenda.now_ms + delay_ms))

    def _connect_again(self, client: SimulatedClient, attempt: int, due_ms: int) -> None:
        def connect() -> None:
            waiting = self._awaiting_root.get(client)
            if waiting is not None and waiting[0] == attempt:
                del self._awaiting_root[client]
                client.connect()

        self.agenda.at(due_ms, connect)

    def dial(self, client: SimulatedClient) -> Cable | None:
        """Connects the client to the broker that is known as the root, or to any broker; returns None if no broker
        accepts clients."""
        accepting = [machine for machine in (*self.machines, *self.secondaries) if machine.accepting]
        if not accepting:
            return None
        if client.place is not None and self.proxied:
            accepting = [machine for machine in accepting if machine.name == client.place]
            if not accepting:
                return None
        sent = client.wants_root or not self.proxied
        named = [machine for machine in accepting if machine.name == client.root and sent]
        machine = (named or accepting)[0] if named or len(accepting) == 1 else client.random.choice(accepting)
        self._ports += 1
        window_bytes = client.random.choice((2_000, 100_000, 1_000_000))
        latency_ms = client.random.choice((0, 0, 1, 1, 2, 7))
        cable = Cable(self.agenda, client.line_random, machine, client, latency_ms, window_bytes)
        machine.connect(cable, self._ports)
        return cable
