"""Tries facts on its own broker that other clients were told on other brokers.

A prober tries one fact at a time: as soon as a client was told of it, and now and then later. A trial is a generator
that sends requests, and receives the broker's answers. A trial that a lost connection ends has no result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pandomq.methods import BasicAck, BasicNack, BasicPublish, BasicReturn, ChannelClose, ChannelCloseOk, Method
from pandomq.properties import PERSISTENT, Properties, encode_header
from pandomq.sim.clients.client import CHANNEL, CHANNEL_OPEN, FRAME_MAX, SimulatedClient
from pandomq.sim.facts import Assumption, Fact, Facts
from pandomq.sim.ledger import BrokenPromise
from pandomq.wire.codec import encode_content, encode_frame

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

TRIALS_MAX: Final = 60
"""The number of trials that a prober begins by itself."""
LAST_TRIALS: Final = 4
"""The number of facts that it tries after the faults have ended."""


class ProbeReply(NamedTuple):
    method: Method
    body: bytes


Course = Generator[None, ProbeReply, None]


class Publishes(NamedTuple):
    """The outcome of the publishes of a trial."""

    acked: int = 0
    nacked: int = 0
    returned: int = 0
    closed: ChannelClose | None = None
    """The broker closed the channel instead of confirming all messages."""


class Prober(SimulatedClient):
    def __init__(self, scene: Scene, name: str, facts: Facts[Any]) -> None:
        super().__init__(scene, name)
        self.subscribes = True
        self.facts = facts
        facts.listeners.append(self.told)
        self._pause_ms = self.random.choice((10, 30, 100))
        self._todo: dict[Fact[Any], None] = {}
        self._tried: Fact[Any] | None = None
        self._course: Course | None = None
        self._prepared = False
        self._sent = 0
        """The number of publishes on this channel."""
        self._trials = 0

    # Methods that a kind of prober implements.

    def prepare(self) -> Course:
        """Runs after the channel was opened, and before the first trial on it."""
        raise NotImplementedError

    def course(self, assumption: Assumption[Any]) -> Course:
        raise NotImplementedError

    def concerns(self, fact: Fact[Any]) -> bool:
        """Whether it can try this fact on its connection."""
        return True

    # The times of trials.

    @property
    def is_prepared(self) -> bool:
        return self.ready and self._prepared

    @property
    def content(self) -> bool:
        # A broker that is neither a member nor a secondary serves no client.
        return (not self._todo and self._tried is None) or (self.place is not None and self.refused)

    def end_wish(self) -> None:
        self._trials = TRIALS_MAX
        self._todo = dict.fromkeys(self.facts.certain()[-LAST_TRIALS:])
        self._begin()

    def told(self, fact: Fact[Any]) -> None:
        if not self.leaving:
            self._todo[fact] = None
            self._begin()

    def _begin(self) -> None:
        while self.ready and self._prepared and self._course is None and self._todo:
            fact = next(iter(self._todo))
            del self._todo[fact]
            if fact.is_certain and self.concerns(fact):
                self._tried = fact
                self._start(self.course(Assumption(fact)))

    def _later(self) -> None:
        cable = self.cable

        def again() -> None:
            if self.cable is not cable or self._todo or self._trials >= TRIALS_MAX or self.leaving:
                return
            certain = [fact for fact in self.facts.certain() if self.concerns(fact)]
            if certain:
                self._trials += 1
                self._todo[self.random.choice(certain)] = None
                self._begin()
            else:
                self._later()

        self.scene.agenda.after(self.random.randint(1, self._pause_ms), again)

    # Courses.

    def opened(self) -> None:
        self._sent = 0
        self._prepared = False
        self._start(self.prepare())

    def disconnected(self) -> None:
        self._prepared = False
        self._course = None
        if self._tried is not None:
            self._todo[self._tried] = None
            self._tried = None

    def method(self, method: Method, body: bytes) -> None:
        if self._course is None:
            raise self.unexpected(method, " without a request")
        self._go_on(self._course, ProbeReply(method, body))

    def channel_closed(self, method: ChannelClose) -> None:
        if self.leaving:
            return
        course = self._course
        if course is None:
            super().channel_closed(method)
        else:
            # The trial ends with the channel, and the next trial begins on a new one.
            self.ready = False
            self._go_on(course, ProbeReply(method, b""))
            self._course = self._tried = None
        if self.cable is not None:
            self.send_bytes(encode_frame(CHANNEL, ChannelCloseOk()) + CHANNEL_OPEN)

    def _start(self, course: Course) -> None:
        self._course = course
        self._go_on(course, None)

    def _go_on(self, course: Course, answer: ProbeReply | None) -> None:
        try:
            if answer is None:
                next(course)
            else:
                course.send(answer)
        except StopIteration:
            if self._course is course:
                self._ended()

    def _ended(self) -> None:
        self._course = self._tried = None
        if self.ready:
            self._prepared = True
        self._begin()
        if self._course is None:
            self._later()

    # Parts of courses.

    def publish(self, exchange: str, routing_key: str, body: bytes, *, mandatory: bool = False) -> None:
        self._sent += 1
        header = encode_header(len(body), Properties(delivery_mode=PERSISTENT))
        method = BasicPublish(exchange, routing_key, mandatory)
        self.send_bytes(encode_content(CHANNEL, method, header, body, FRAME_MAX))
        self.scene.trace.detail(self.name, f"> {method}")

    def await_confirms(self, count: int) -> Generator[None, ProbeReply, Publishes]:
        """Awaits the confirms of the last `count` publishes on the channel."""
        first = self._sent - count + 1
        acked: set[int] = set()
        nacked: set[int] = set()
        returned = 0
        while len(acked) + len(nacked) < count:
            method, _ = yield
            match method:
                case BasicAck(tag, multiple):
                    acked |= set(range(first, tag + 1) if multiple else (tag,)) - nacked
                case BasicNack(tag, multiple):
                    nacked |= set(range(first, tag + 1) if multiple else (tag,)) - acked
                case BasicReturn():
                    returned += 1
                case ChannelClose():
                    return Publishes(len(acked), len(nacked), returned, method)
                case _:
                    raise self.unexpected(method)
        return Publishes(len(acked), len(nacked), returned)

    def await_answer(self, expected: type[Method]) -> Generator[None, ProbeReply, ProbeReply]:
        """Awaits an answer of the only legal type."""
        answer = yield
        if not isinstance(answer.method, expected):
            raise BrokenPromise("legal requests are served", f"{self.name} received {answer.method}")
        return answer
