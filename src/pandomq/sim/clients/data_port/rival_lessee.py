"""One of several clients that use the same lease: each request takes the lease over from the others.

A lessee reads the messages of the lease, and releases them at once, or much later, when the lease may have timed out,
and its name may have a later lease with other messages: such a release is refused or has no effect. It settles the
released messages only if the broker may apply the release to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pandomq import data_form
from pandomq.sim.checkers.leases import LEASE_GAP, ONE, TIMEOUT_MS
from pandomq.sim.clients.data_port.data_speaker import DataSpeaker, rows_of
from pandomq.sim.ledger import BrokenPromise, SentMessage

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.checkers.leases import LeasesKept
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

BYTES_MAX: Final = 100_000
READS: Final = 5
"""The number of reads of a slow reader: together they take longer than a lease without them."""
OVER: Final = "is ending"


class RivalLessee(DataSpeaker):
    def __init__(
        self, scene: Scene, name: str, kind: QueueKind, lease: str, checker: LeasesKept, *, once: bool = False
    ) -> None:
        """With `once` it does not reconnect after it has read something."""
        super().__init__(scene, name)
        self._once = once
        self._kind = kind
        self._lease = lease
        self._checker = checker
        self._messages_max = self.random.randint(2, 8)
        self._timeout_ms = self.random.choice((TIMEOUT_MS, TIMEOUT_MS, TIMEOUT_MS + 300))
        self._vanishes = self.random.random() < 0.6
        """Whether it does not reconnect at the end, so that its lease has to time out."""
        self._turns_left = -1
        """After the faults: how often it leases before it ends; -1 before."""
        self._ended = False
        self._task = "lease"
        """The next action."""
        self._reads_left = 0
        self._stream = ""
        self._first = self._end = 0
        """The offsets of its lease."""
        self._leased_ms = (0, 0)
        """The times of the request for the lease, and of the answer."""
        self._found: dict[int, SentMessage] = {}
        self._proven: set[SentMessage] = set()
        """The messages that were durably settled before it requested the lease."""
        self._settled: list[SentMessage] = []
        """The messages of the release that is not answered yet."""
        self._uncertain: set[SentMessage] = set()
        """Messages of releases that a stopping broker did not answer: they may have taken effect."""
        self._epoch = 0

    @property
    def content(self) -> bool:
        return self._ended

    def end_wish(self) -> None:
        self._turns_left = 2

    # Requests.

    def begin(self) -> None:
        if self._epoch != self.scene.ledger.epoch:
            # Another client may have the lease by now.
            self._task, self._epoch = "lease", self.scene.ledger.epoch
        if not self._turns_left and self._vanishes:
            self._ended = True
        elif not self._turns_left:
            self._checker.asks_end(self._kind.name, self._lease)
            self.ask("end_lease", queue=self._kind.name, name=self._lease)
        elif self._task == "read":
            self._read()
        elif self._task == "release":
            self._release()
        else:
            self._ask_lease()

    def _ask_lease(self) -> None:
        queue = self._kind.name
        self._proven = {message for place, message in self.scene.ledger.proven if place == queue}
        self._checker.asks(queue, self._lease, self._messages_max)
        limits: dict[str, Any] = {
            "messages_max": self._messages_max,
            "bytes_max": BYTES_MAX,
            "timeout_ms": self._timeout_ms,
        }
        self.ask("lease", queue=queue, name=self._lease, **limits)

    def _read(self) -> None:
        self.ask("read", stream=self._stream, first_offset=self._first, end_offset=self._end, bytes_max=BYTES_MAX)

    def _release(self) -> None:
        record = self._checker.record(self._kind.name, self._lease)
        # A release of a lease that is known to be over must have no effect: these messages are to return.
        self._settled = [] if record.is_before(self._end) else list(self._found.values())
        for message in self._settled:
            self.scene.ledger.settle((self._kind.name, message))
        self.ask("release", queue=self._kind.name, name=self._lease, offset=self._end)

    # Answers.

    def hear_refusal(self, asked: str, fields: Fields) -> None:
        over = fields["error"] == data_form.NOT_FOUND or OVER in fields["text"]
        if asked == "release":
            if fields["error"] == data_form.NOT_NOW and not over:
                self._uncertain.update(self._settled)
            self._unsettle()
        if asked == "end_lease":
            self._ended = over
        elif asked in ("lease", "release") and over and self._epoch == self.scene.ledger.epoch:
            self._checker.said_over(self._kind.name, self._lease)
        if over or fields["error"] == data_form.OFFSET_GONE:
            self._task = "lease"

    def _unsettle(self) -> None:
        for message in self._settled:
            if message not in self._uncertain:
                self.scene.ledger.unsettle((self._kind.name, message))
        self._settled = []

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        if self._epoch != self.scene.ledger.epoch:
            self.go_on(0)
            return
        match asked:
            case "end_lease":
                self._ended = True
            case "lease":
                self._take(fields)
            case "read":
                self._look(fields, payload)
            case "release":
                self._released(fields["first_offset"], fields["end_offset"])
            case _:
                raise AssertionError(f"there was no request to {asked}")

    def _take(self, fields: Fields) -> None:
        self._stream, self._first, self._end = fields["stream"], fields["first_offset"], fields["end_offset"]
        self._checker.answered(self._kind.name, self._lease, self._first, self._end, self.asked_ms)
        self._leased_ms = (self.asked_ms, self.scene.agenda.now_ms)
        self._found = {}
        if self._turns_left > 0:
            self._turns_left -= 1
        if self._first < self._end:
            self._read()
        else:
            self.go_on(self.random.randint(20, 120))

    def _look(self, fields: Fields, payload: bytes) -> None:
        if len(self.scene.machines) == 1:
            self._checker.read(self._kind.name, self._lease, self._first, self.asked_ms)
        found = {row.offset: self.scene.ledger.message_of(row.body) for row in rows_of(fields, payload)}
        self._found = {offset: found[offset] for offset in range(self._first, self._end) if offset in found}
        if len(self._found) < self._end - self._first:
            raise BrokenPromise(ONE, f"{self.name} has {self._first} to {self._end}, and reads {sorted(found)}")
        for offset, message in self._found.items():
            if message in self._proven:
                raise BrokenPromise("no acked message comes back", f"{message} was leased after it was done for good")
            self._checker.holds(self._stream, offset, message, *self._leased_ms)
            self.scene.ledger.emitted.setdefault((self._kind.name, message), 0)
        self._choose()

    def _choose(self) -> None:
        if self._once:
            self._ended = True
        elif self._reads_left:
            self._reads_left -= 1
            self._later("read" if self._reads_left else "lease", self.random.randint(250, 400))
        else:
            self._choose_at_random(self.random.random())

    def _choose_at_random(self, chance: float) -> None:
        if chance < 0.15 and self._turns_left < 0:
            # The lease is over by then, unless another client renews it.
            self._later("release", TIMEOUT_MS + self.random.randint(200, 500))
        elif chance < 0.3 and self._turns_left < 0:
            self._reads_left = READS
            self._later("read", self.random.randint(250, 400))
        elif chance < 0.5:
            self._later("lease", self.random.randint(10, 100))
        else:
            self._later("release", self.random.randint(0, 40))

    def _later(self, task: str, delay_ms: int) -> None:
        self._task = task
        self.go_on(delay_ms)

    def _released(self, first: int, end: int) -> None:
        self._checker.answered(self._kind.name, self._lease, first, end, self.asked_ms)
        if first > self._end + LEASE_GAP:
            # The name has another lease, on which the release had no effect.
            self._unsettle()
        else:
            for message in self._settled:
                self.scene.ledger.proven.add((self._kind.name, message))
            self._settled = []
        self._later("lease", self.random.randint(10, 80))
