"""A client that stages batches at one broker, and records the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.staging.names import StagingAttempt
from pandomq.broker.staging.staging import Chosen
from pandomq.properties import Properties, encode_header
from pandomq.wire import codec
from tests.unit.broker.conversation import FRAME_BYTES, World

PERSISTENT = Properties(delivery_mode=2)


def frames(
    *bodies: str, exchange: str = "", key: str = "q", properties: Properties = PERSISTENT, channel: int = 1
) -> bytes:
    return b"".join(
        codec.encode_content(
            channel,
            methods.BasicPublish(exchange, key),
            encode_header(len(body), properties),
            body.encode(),
            FRAME_BYTES,
        )
        for body in bodies
    )


class Sink:
    """Asks one broker; what is answered it notes."""

    def __init__(self, world: World, *, user: str = "guest", vhost: str = "/", query: str = "w") -> None:
        self.world = world
        self.query = query
        self.user = user
        self.vhost = world.broker.state.vhosts[vhost]
        self.answers: list[object] = []

    def _note(self, answer: object) -> Callable[..., None]:
        return lambda *more: self.answers.append((answer, *more) if more else answer)

    def stage(
        self,
        octets: bytes,
        part: int = 0,
        *,
        batch: int = 0,
        partition: int = 0,
        attempt: str = "a",
        routed: bool = False,
    ) -> None:
        self.world.broker.staging.stage(
            self.vhost,
            self.vhost.access[self.user],
            StagingAttempt(batch, partition, attempt, self.query),
            part,
            octets,
            self._note("staged"),
            self.world.now_ms,
            routed=routed,
        )
        self.world.run([])

    def ask_commit(self, *chosen: tuple[int, str, int], batch: int = 0) -> None:
        self.world.broker.staging.commit(
            self.vhost,
            self.vhost.access[self.user],
            self.query,
            batch,
            [Chosen(*one) for one in chosen],
            self._note("committed"),
            self._note("failed"),
            self.world.now_ms,
        )

    def commit(self, *chosen: tuple[int, str, int], batch: int = 0) -> None:
        self.ask_commit(*chosen, batch=batch)
        self.world.run([])

    def drop(self, *attempts: tuple[int, str], batch: int = 0) -> None:
        named = [StagingAttempt(batch, partition, name, self.query) for partition, name in attempts]
        self.world.broker.staging.drop(self.vhost, self.user, named, self._note("dropped"), self.world.now_ms)
        self.world.run([])

    def last_batch(self) -> int:
        found: list[int] = []
        self.world.broker.staging.last_batch(self.vhost, self.user, self.query, found.append, self.world.now_ms)
        self.world.run([])
        return found[0]

    def heard(self) -> list[object]:
        answers, self.answers = self.answers, []
        return answers


def prepared(queues: Sequence[str] = ("q",), limits: BrokerLimits | None = None) -> tuple[World, Sink]:
    world = World(limits=limits)
    for queue in queues:
        world.peer().declare(queue, durable=True)
    return world, Sink(world)


STAGED, COMMITTED = ("staged", False), "committed"
