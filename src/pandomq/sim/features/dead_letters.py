"""Dead-letter cycles, unroutable messages, and large messages."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.methods import ExchangeDeclare, QueueBind
from pandomq.sim.checkers.dead_letters import RoundsEnd
from pandomq.sim.clients.dead_letters import (
    BigConsumer,
    BigPublisher,
    MandatoryPublisher,
    RejectingConsumer,
    Rejections,
    RoundPublisher,
    TiredConsumer,
    TiringConsumer,
    TrailConsumer,
)
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import NOWHERE, QueueKind

if TYPE_CHECKING:
    from pandomq.methods import Method
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.ledger import SentMessage
    from pandomq.sim.world import World

PING_DEAD: Final = ExchangeDeclare("ping-dead", "fanout", durable=True)
PONG_DEAD: Final = ExchangeDeclare("pong-dead", "fanout", durable=True)
PONG: Final = QueueKind(
    "pong", {"x-message-ttl": 40, "x-dead-letter-exchange": PONG_DEAD.exchange}, keeps=False, ordered=False, reborn=True
)
TRAIL_PING: Final = QueueKind("trail-ping", ordered=False, reborn=True)
TRAIL_PONG: Final = QueueKind("trail-pong", ordered=False, reborn=True)
"""A message that died in ping or pong leaves a copy here, beside the one that continues."""
LENGTH_MAX: Final = 2

REFUSED: Final = tuple(
    QueueKind(
        f"refused-{number}",
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"refused-{3 - number}"},
        ordered=False,
        dead_letters_to=f"refused-{3 - number}",
        recurs=True,
    )
    for number in (1, 2)
)
LIMIT: Final = 2
TRAIL_TIRED: Final = QueueKind("trail-tired", ordered=False, reborn=True)
TIRED: Final = QueueKind(
    "tired",
    {
        "x-queue-type": "quorum",
        "x-delivery-limit": LIMIT,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": TRAIL_TIRED.name,
    },
    ordered=False,
    dead_letters_to=TRAIL_TIRED.name,
)
ROUTED: Final = QueueKind("routed")
BULKY: Final = QueueKind("bulky")


class DeadLettersFeature(Feature):
    name = "letters"
    chance = 0.3

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._expires = random.random() < 0.6
        """Whether messages in ping die of their age; otherwise they are pushed out."""
        death = {"x-message-ttl": 60} if self._expires else {"x-max-length": LENGTH_MAX}
        self._ping = QueueKind(
            "ping",
            {**death, "x-dead-letter-exchange": PING_DEAD.exchange},
            keeps=False,
            ordered=False,
            length_max=0 if self._expires else LENGTH_MAX,
            recurs=True,
        )
        self._rounds_end = RoundsEnd(world.ledger, self._ping.name, PONG.name, TRAIL_PING.name, TRAIL_PONG.name)
        world.ledger.kinds[NOWHERE.name] = NOWHERE
        self._sums: dict[SentMessage, int] = {}

    def checkers(self) -> Sequence[Checker]:
        return (self._rounds_end,)

    def queues(self) -> Sequence[QueueKind]:
        return self._ping, PONG, TRAIL_PING, TRAIL_PONG, *REFUSED, TIRED, TRAIL_TIRED, ROUTED, BULKY

    def clients(self) -> Sequence[SimulatedClient]:
        scene, random = self.world.scene, self.random
        topology: list[Method] = [PING_DEAD, PONG_DEAD]
        for exchange, queues in ((PING_DEAD, (PONG, TRAIL_PING)), (PONG_DEAD, (self._ping, TRAIL_PONG))):
            topology += [QueueBind(kind.name, exchange.exchange, "") for kind in queues]
        in_ping = (self._ping.name, "expired" if self._expires else "maxlen", 1)
        rejections = Rejections()
        tiring = TiringConsumer(scene, "consumer-of-tired", TIRED, LIMIT)
        others = [PONG, TRAIL_PING, TRAIL_PONG]
        return [
            RoundPublisher(scene, "publisher-of-ping", self._ping, random.randint(8, 20), others, topology),
            TrailConsumer(scene, "trail-of-ping", TRAIL_PING, [in_ping]),
            TrailConsumer(scene, "trail-of-pong", TRAIL_PONG, [(PONG.name, "expired", 1), in_ping]),
            RoundPublisher(scene, "publisher-of-refused", REFUSED[0], random.randint(4, 10), REFUSED[1:]),
            *(RejectingConsumer(scene, f"consumer-of-{kind.name}", kind, rejections) for kind in REFUSED),
            RoundPublisher(scene, "publisher-of-tired", TIRED, random.randint(4, 8), [TRAIL_TIRED]),
            tiring,
            TiredConsumer(scene, "consumer-of-trail-tired", TRAIL_TIRED, tiring, LIMIT),
            MandatoryPublisher(scene, "mandatory", ROUTED, random.randint(8, 20)),
            BigPublisher(scene, "publisher-of-bulky", BULKY, random.randint(2, 6), self._sums),
            BigConsumer(scene, "consumer-of-bulky", BULKY, self._sums),
        ]

    def healed(self) -> bool:
        """Whether all messages that had to die have died."""
        names = {client.name for client in self.world.clients}
        return not self._expires or "trail-of-pong" not in names or self._rounds_end.all_died()
