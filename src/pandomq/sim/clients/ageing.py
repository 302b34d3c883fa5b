"""Writes and reads a stream with `x-max-age`.

When the faults are over the writer fills some segments, waits until they are too old, and fills others: then the first
ones must be gone, and no young one.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from pandomq.methods import BasicAck, BasicConsume, BasicConsumeOk, BasicDeliver, BasicQos, BasicQosOk, QueueDeclareOk
from pandomq.properties import read_headers
from pandomq.sim.checkers.streams import StreamsKept
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.publisher import MessageOptions, Publisher
from pandomq.sim.ledger import BrokenPromise, SentMessage

if TYPE_CHECKING:
    from pandomq.methods import Method
    from pandomq.sim.checkers.root_time import RootTime
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

PROMISE: Final = "a stream drops messages by age"
MAX_AGE_MS: Final = 1_000
FILLING_BYTES: Final = 400
FILL: Final = 16
"""The number of messages that fills three segments."""
OLD: Final = 6
"""The number of them in segments that end before the last segment does."""
WAIT_MS: Final = 1_250
PAUSE_MS: Final = (40, 300)
LOOK_MS: Final = 400
"""The interval at which a reader checks whether the stream still has what it waits for."""
PREFETCH: Final = 50
OFFSET: Final = "x-stream-offset"


class AgeingStage(enum.Enum):
    FAULTS = "faults"
    FILLING = "filling"
    WAITING = "waiting"
    REFILLING = "refilling"
    DONE = "done"


class AgeingPublisher(Publisher):
    def __init__(self, scene: Scene, name: str, kind: QueueKind, wanted: int, time: RootTime) -> None:
        super().__init__(scene, name, [kind], "", wanted)
        self._window = 4
        self._burst_max = 4
        self._think_ms = self.random.choice((5, 40))
        self._time = time
        self.stage = AgeingStage.FAULTS
        self.old: list[SentMessage] = []
        """Messages that must be gone when the publisher is done."""
        self.filled: list[SentMessage] = []

    @property
    def content(self) -> bool:
        return self.stage is AgeingStage.DONE and super().content

    def form(self) -> MessageOptions:
        return MessageOptions(filling=bytes(FILLING_BYTES), persistent=True)

    def formed(self, message: SentMessage, form: MessageOptions | None) -> None:
        if self.stage is AgeingStage.FAULTS:
            self.old.append(message)
        elif self.stage is AgeingStage.FILLING:
            self.filled.append(message)

    def end_wish(self) -> None:
        self._time.begin_calm()
        self.stage = AgeingStage.FILLING
        self._want_more()

    def _want_more(self) -> None:
        self._wanted = self.confirmed + len(self._unconfirmed) + FILL
        self._later()

    def method(self, method: Method, body: bytes) -> None:
        super().method(method, body)
        if self.stage in (AgeingStage.FILLING, AgeingStage.REFILLING) and super().content:
            self._advance()

    def _advance(self) -> None:
        if self.stage is AgeingStage.REFILLING:
            self.stage = AgeingStage.DONE
            return
        self.stage = AgeingStage.WAITING
        self.old += self.filled[:OLD]
        self.scene.agenda.after(WAIT_MS, self.refill)

    def refill(self) -> None:
        self.stage = AgeingStage.REFILLING
        self._want_more()


class AgeingReader(SimulatedClient):
    """Reads the whole stream, from the beginning, again and again."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, publisher: AgeingPublisher, time: RootTime) -> None:
        super().__init__(scene, name)
        self.subscribes = True
        self._kind = kind
        self._publisher = publisher
        self._time = time
        self._read: set[SentMessage] = set()
        self._due: list[SentMessage] = []
        """The messages that were confirmed when it began to read."""
        self._end = 0
        self._reading = 0
        """The number of times that it has begun to read."""
        self._is_over = True
        """Whether it has read everything that it wanted to read this time."""
        self._is_last = False
        self._seen_last = False
        """Whether it has read the whole stream after the publisher was done."""

    @property
    def content(self) -> bool:
        return self._seen_last

    def opened(self) -> None:
        self.declare(self._kind)

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case QueueDeclareOk():
                self._begin()
            case BasicDeliver(_, tag):
                self._take(tag, body)
            case BasicQosOk() | BasicConsumeOk():
                pass
            case _:
                raise self.unexpected(method)

    def _begin(self) -> None:
        self._end = StreamsKept.end_of(self._kind.name, self.scene.machines)
        self._reading += 1
        self._is_over = False
        self._is_last = self._publisher.stage is AgeingStage.DONE
        self._read.clear()
        messages = self.scene.ledger.messages.values()
        self._due = [message for message in messages if message.confirmed and self._kind.name in message.queues]
        # A deposed root that does not know it yet has fewer messages.
        if self._time.now(None) is None or not self._end:
            self._read_again()
            return
        consume = BasicConsume(self._kind.name, self._kind.name, arguments={OFFSET: "first"})
        self.send(BasicQos(prefetch_count=PREFETCH), consume)
        self._look_later(self._reading)

    def _look_later(self, reading: int) -> None:
        self.scene.agenda.after(LOOK_MS, lambda: self._look(reading))

    def _look(self, reading: int) -> None:
        """All messages that the reader waits for may have become too old before it received them. Then it must receive
        later ones."""
        if self._is_over or reading != self._reading or self.cable is None:
            return
        if StreamsKept.first_of(self._kind.name, self.scene.machines) >= self._end and self._publisher.content:
            self._publisher.refill()
        self._look_later(reading)

    def _take(self, tag: int, body: bytes) -> None:
        self.send(BasicAck(tag))
        self._read.add(self.scene.ledger.message_of(body))
        offset = read_headers(self.header).get(OFFSET)
        assert isinstance(offset, int)
        # The last message that was present when it began may be too old by now: then the first one that it receives is
        # a later one.
        if offset >= self._end - 1 and not self._is_over:
            self._check()
            self._read_again()

    def _read_again(self) -> None:
        self._is_over = True
        self._seen_last = self._seen_last or (self._is_last and bool(self._read))
        cable = self.cable

        def cut() -> None:
            if self.cable is cable and not self.leaving and not self._seen_last:
                self.cut()

        self.scene.agenda.after(self.random.randint(*PAUSE_MS), cut)

    def _check(self) -> None:
        now = self._time.now(self.cable)
        if now is None:
            return
        for message in self._due:
            # If the message went through another broker, it is not known which root accepted it, and by which clock.
            young = message.life and now.at_ms - message.sent_ms < MAX_AGE_MS
            if young and message.confirmed and message not in self._read:
                age_ms = now.at_ms - message.sent_ms
                raise BrokenPromise(PROMISE, f"{message} is gone from {self._kind.name} after {age_ms} ms")
        old = [message for message in self._publisher.old if message in self._read] if self._is_last else []
        if old and self._time.undisturbed_ms(now.life) > WAIT_MS:
            raise BrokenPromise(PROMISE, f"{old[0]} is still in {self._kind.name}, and {len(old) - 1} more")
