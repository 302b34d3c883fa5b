"""Publishes under many names, one message at a time, and knows which of them the broker remembers (D11).

    remembered    another message under a known number: the broker confirms it, and no queue receives it
    forgotten     the numbers begin anew: a confirmed message is in the queue
    not certain   the next number, which counts in both cases

It never repeats a request that was not answered, and does not use the name of such a request again.
"""

from __future__ import annotations

import enum
from random import Random
from typing import TYPE_CHECKING

from pandomq.methods import BasicAck, ConfirmSelect, ConfirmSelectOk, Method, QueueDeclareOk
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.publisher import Publishing
from pandomq.sim.ledger import BrokenPromise, SentMessage

if TYPE_CHECKING:
    from pandomq.sim.checkers.counted_once import CountedOnce
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene
    from pandomq.sim.state.memory_model import MemoryModel


class RosterStep(enum.Enum):
    NEXT = enum.auto()
    REPEAT = enum.auto()
    ANEW = enum.auto()


class Names:
    """The names that a client uses now, with the last number of each."""

    def __init__(self, prefix: str, count: int) -> None:
        self._prefix = prefix
        self._made = 0
        self._drawn = ""
        self.numbers: dict[str, int] = {}
        """The numbers, in the order in which the names were last drawn."""
        for _ in range(count):
            self.add()

    def add(self) -> None:
        self._made += 1
        self.numbers[f"{self._prefix}-{self._made}"] = 0

    def draw(self, random: Random) -> str:
        """Draws a name: often the one that was drawn before, or the one that was not drawn for the longest time."""
        chance = random.random()
        if chance < 0.4:
            self._drawn = next(iter(self.numbers))
        elif chance < 0.7 or self._drawn not in self.numbers:
            self._drawn = random.choice(list(self.numbers))
        self.numbers[self._drawn] = self.numbers.pop(self._drawn)
        return self._drawn

    def choose(
        self, name: str, random: Random, model: MemoryModel, now_ms: int, world_ms: int
    ) -> tuple[RosterStep, int]:
        """Chooses what to do next under this name, and the number for it."""
        last = self.numbers[name]
        if last and model.has_forgotten(name):
            return RosterStep.ANEW, random.randint(1, last)
        if last and random.random() < 0.6 and model.remembers(name, now_ms, world_ms):
            # The last number is known for certain; the row of an earlier number may have been evicted in between.
            return RosterStep.REPEAT, last
        return RosterStep.NEXT, last + 1

    def replace(self, name: str) -> None:
        del self.numbers[name]
        self.add()


class Roster(SimulatedClient):
    def __init__(
        self,
        scene: Scene,
        name: str,
        kind: QueueKind,
        model: MemoryModel,
        checker: CountedOnce,
        *,
        names: int,
        wanted: int,
        rests_ms: tuple[int, ...],
    ) -> None:
        super().__init__(scene, name)
        self._kind = kind
        self._model = model
        self._checker = checker
        self._names = Names(name, names)
        self._wanted = wanted
        self._rests_ms = rests_ms
        self._publishing = Publishing(self)
        self._open: tuple[RosterStep, str, int, SentMessage, int] | None = None
        """The unconfirmed message: step, name, number, message, and the time at which it was sent in the cluster's
        time."""
        self._begun = False
        self._tag = 0

    @property
    def content(self) -> bool:
        return self._wanted <= 0 and self._open is None

    def end_wish(self) -> None:
        self._wanted = 4
        self._later()

    def opened(self) -> None:
        self._tag = 0
        self.send(ConfirmSelect())
        self.declare(self._kind)

    def disconnected(self) -> None:
        self._begun = False
        if self._open is not None:
            _, name, _, _, _ = self._open
            self._open = None
            self._model.doubt(name, self.scene.moving_ms)
            self._names.replace(name)

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case QueueDeclareOk():
                self._begun = True
                self._later()
            case BasicAck(tag):
                self._confirmed(tag)
                self._later()
            case ConfirmSelectOk():
                pass
            case _:
                raise self.unexpected(method)

    def _later(self) -> None:
        self.act_later(self.random.choice(self._rests_ms), self._publish)

    def _now_ms(self) -> int:
        assert self.cable is not None
        return self.scene.here_and_now(self.cable)[1]

    def _publish(self) -> None:
        if not self._begun or self._open is not None or self._wanted <= 0:
            return
        now_ms = self._now_ms()
        if not now_ms:
            # No broker serves, so the cluster's time is not known.
            self._later()
            return
        name = self._names.draw(self.random)
        step, number = self._names.choose(name, self.random, self._model, now_ms, self.scene.moving_ms)
        message, octets = self._publishing.message([self._kind], label=(name, number))
        self._open = (step, name, number, message, now_ms)
        self._wanted -= 1
        self.scene.trace.detail(self.name, f"> {step.name} {name} {number}: {message}")
        self.send_bytes(octets)

    def _confirmed(self, tag: int) -> None:
        self._tag += 1
        if self._open is None or tag != self._tag:
            raise BrokenPromise(
                "confirms", f"{self.name} received a confirm for publish {tag}, and waits for {self._tag}"
            )
        assert self.cable is not None
        step, name, number, message, sent_ms = self._open
        self._open = None
        now_ms, world_ms = self._now_ms(), self.scene.moving_ms
        if step is not RosterStep.REPEAT:
            self.scene.observer.confirmed(message, self.cable)
        if not now_ms or (step is RosterStep.REPEAT and not self._model.remembers(name, now_ms, world_ms)):
            # The broker may have forgotten the name meanwhile and noted it again, or the time at which it did so is not
            # known.
            self._model.doubt(name, world_ms)
            self._names.replace(name)
        elif step is RosterStep.REPEAT:
            self._checker.repeated(message)
            self._model.maybe_noted(name, now_ms)
        else:
            self._names.numbers[name] = number
            self._model.noted(name, sent_ms, now_ms)
