"""Timed events: delayed messages, messages with their own expiration, queues that expire."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.on_time import NeverStale, OnTime
from pandomq.sim.checkers.root_time import RootTime
from pandomq.sim.clients.queue_keeper import QueueKeeper
from pandomq.sim.clients.timed import (
    DelayedPublisher,
    EagerConsumer,
    MortalPublisher,
    PerishablePublisher,
    SlowConsumer,
)
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.world import World

RIPE: Final = QueueKind("ripe", ordered=False, reborn=True)
"""The queue that receives delayed messages."""
GRAVES: Final = QueueKind("graves", reborn=True)
"""The dead-letter queue; dead letters arrive in the order of their queue, because messages expire at its head only."""
MORTAL: Final = QueueKind(
    "mortal",
    {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": GRAVES.name},
    dead_letters_to=GRAVES.name,
)
"""A queue of messages with their own expiration, without consumers."""
PERISHABLE: Final = QueueKind("perishable", keeps=False)
"""A queue of messages with their own expiration, with consumers."""


class TimedFeature(Feature):
    name = "timed"
    chance = 0.3

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._time = RootTime(world.ledger, world.scene)
        self._on_time = OnTime(world.ledger, self._time)
        self._never_stale = NeverStale(world.ledger, self._time, PERISHABLE.name)

    def checkers(self) -> Sequence[Checker]:
        return self._time, self._on_time, self._never_stale

    def queues(self) -> Sequence[QueueKind]:
        return RIPE, GRAVES, MORTAL, PERISHABLE

    def clients(self) -> Sequence[SimulatedClient]:
        scene, random, on_time = self.world.scene, self.random, self._on_time
        wanted = random.randint(8, 25)
        return [
            DelayedPublisher(scene, "delayer", RIPE, on_time, wanted),
            EagerConsumer(scene, "consumer-of-ripe", RIPE, on_time, self._time),
            MortalPublisher(scene, "publisher-of-mortal", MORTAL, GRAVES, on_time, wanted),
            EagerConsumer(scene, "consumer-of-graves", GRAVES, on_time, self._time),
            PerishablePublisher(scene, "publisher-of-perishable", PERISHABLE, self._never_stale, wanted),
            SlowConsumer(scene, "consumer-of-perishable", PERISHABLE),
            QueueKeeper(scene, "keeper", self._time, random.randint(4, 12)),
        ]

    def healed(self) -> bool:
        consumers = [client for client in self.world.clients if isinstance(client, EagerConsumer)]
        return all(self._on_time.all_came(consumer.kind.name) for consumer in consumers)
