"""Leases messages of a queue, reads them by offset, some of them twice, and releases them, which settles them.

Messages that it does not release in time, or gives up, return to their place with `redelivered` set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq import data_form
from pandomq.sim.clients.data_port.data_speaker import DataSpeaker, rows_of
from pandomq.sim.ledger import BrokenPromise, SentMessage

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

NAME: Final = "lease"
TIMEOUT_MS: Final = 1_000
BYTES_MAX: Final = 100_000
ONE: Final = "a lease has one content"


class Lessee(DataSpeaker):
    def __init__(self, scene: Scene, name: str, kind: QueueKind) -> None:
        super().__init__(scene, name)
        self._kind = kind
        self._turns_left = -1
        """After the faults: how often it leases before it ends; -1 before."""
        self._ended = False
        self._stream = ""
        self._first = self._end = 0
        """The offsets that it has leased."""
        self._known: dict[tuple[str, int], SentMessage] = {}
        """All messages that it ever read, by stream and offset."""
        self._releasing: list[SentMessage] = []

    @property
    def content(self) -> bool:
        return self._ended

    def end_wish(self) -> None:
        self._turns_left = 2

    def begin(self) -> None:
        if not self._turns_left:
            self.ask("end_lease", queue=self._kind.name, name=NAME)
        else:
            self.ask(
                "lease",
                queue=self._kind.name,
                name=NAME,
                messages_max=self.random.randint(1, 12),
                bytes_max=BYTES_MAX,
                timeout_ms=TIMEOUT_MS,
            )

    def hear_refusal(self, asked: str, fields: Fields) -> None:
        # The lease timed out before, or none was ever made.
        self._ended = asked == "end_lease" and fields["error"] == data_form.NOT_FOUND

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        match asked:
            case "end_lease":
                self._ended = True
            case "lease":
                self._stream, self._first, self._end = fields["stream"], fields["first_offset"], fields["end_offset"]
                if self._first < self._end:
                    self._read()
                elif fields["more"]:
                    self.go_on(0)
                else:
                    self._turn(self.random.randint(5, 60))
            case "read":
                self._release(fields, payload)
            case "release":
                for message in self._releasing:
                    self.scene.ledger.proven.add((self._kind.name, message))
                self._turn(self.random.randint(0, 20))
            case _:
                raise AssertionError(f"there was no request to {asked}")

    def _turn(self, delay_ms: int) -> None:
        self._turns_left = max(self._turns_left - 1, 0) if self._turns_left >= 0 else -1
        self.go_on(delay_ms)

    def _read(self) -> None:
        self.ask("read", stream=self._stream, first_offset=self._first, end_offset=self._end, bytes_max=BYTES_MAX)

    def _release(self, fields: Fields, payload: bytes) -> None:
        found: dict[int, SentMessage] = {}
        for row in rows_of(fields, payload):
            if self._first <= row.offset < self._end:
                found[row.offset] = self._note(row.offset, self.scene.ledger.message_of(row.body))
        if sorted(found) != list(range(self._first, self._end)):
            raise BrokenPromise(ONE, f"{self.name} has {self._first} to {self._end}, and reads {sorted(found)}")
        chance = self.random.random()
        if chance < 0.2:
            # The lessee does something else for a while, and later leases again, or never.
            return
        if chance < 0.4:
            self._read()
            return
        end = self.random.randint(self._first + 1, self._end)
        self._releasing = [found[offset] for offset in range(self._first, end)]
        for message in self._releasing:
            self.scene.ledger.settle((self._kind.name, message))
        self.ask("release", queue=self._kind.name, name=NAME, offset=end)

    def _note(self, offset: int, message: SentMessage) -> SentMessage:
        place = (self._kind.name, message)
        if place in self.scene.ledger.proven:
            raise BrokenPromise("no acked message comes back", f"{message} was leased again after its release")
        known = self._known.setdefault((self._stream, offset), message)
        if known is not message:
            raise BrokenPromise(ONE, f"{message} is at offset {offset} of {self._stream}, where {known} was")
        self.scene.ledger.emitted.setdefault(place, 0)
        return message
