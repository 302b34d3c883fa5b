"""Reads a stream on the data ports of all brokers, one after the other: whole chunks, from its position or from any
offset. It also asks for chunks' places and times, and stores its offset.

At the end it has read the whole stream, at the root and at each other broker as far as that broker has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pandomq import data_form
from pandomq.sim.checkers.rows import ROWS
from pandomq.sim.clients.data_port.data_speaker import DataSpeaker, rows_of
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.data_form import Fields
    from pandomq.sim.checkers.rows import RowsKept
    from pandomq.sim.machine import Machine
    from pandomq.sim.scene import Scene

BYTES: Final = (1, 2_000, 100_000)
WAIT_MS: Final = 100
FAR: Final = 1 << 40
"""An offset beyond the end of every stream."""
TASKS: Final = ("range", "read", "read", "again", "index", "offset_at", "store_offset")


class BulkReader(DataSpeaker):
    # The stream deletes nothing, so no refusal may say that an offset is gone.
    transient = (data_form.NOT_THE_ROOT, data_form.NOT_NOW, data_form.NOT_FOUND)

    def __init__(self, scene: Scene, name: str, checker: RowsKept) -> None:
        super().__init__(scene, name)
        self._checker = checker
        self.next_offset = 0
        """The offset after the last one before which it has read every row."""
        self._first = 0
        """The first offset of the range that it is reading."""
        self._time_us = 0
        self._storing = 0
        self._known = 0
        """The end that this broker had reported before the request."""
        self._asks_left = 0
        """The number of requests that it still makes on this connection."""
        self._ending = False
        self._read_to_end: set[str] = set()
        """After the faults: the brokers at which it has read to the end, or that refused it."""
        self._place = ""

    @property
    def content(self) -> bool:
        return self._ending and self._read_to_end.issuperset(machine.name for machine in self.scene.machines)

    def end_wish(self) -> None:
        self._ending = True

    # Requests.

    def choose_machine(self) -> Machine | None:
        machines = [one for one in self.scene.machines if one.accepting and one.awake]
        if self._ending:
            machines = [one for one in machines if one.name not in self._read_to_end]
        machine = self.random.choice(machines) if machines else None
        self._place = "" if machine is None else machine.name
        self._asks_left = self.random.randint(2, 6)
        return machine

    def begin(self) -> None:
        machine = self.machine
        if machine is None or (not self._asks_left and not self._ending):
            self.leave_broker()
            return
        self._asks_left -= 1
        self._known = self._checker.known_end(machine.life)
        task = "range" if self._ending else self.random.choice(TASKS)
        if task == "again" and self.next_offset:
            self._read(self.random.randrange(self.next_offset))
        elif task == "offset_at" and self.next_offset:
            self._time_us = self._checker.time_of(self.random.randrange(self.next_offset))
            self.ask("offset_at", stream=self._checker.stream, time_us=self._time_us)
        elif task == "index":
            self._first = self.random.randint(0, self.next_offset)
            self.ask("index", stream=self._checker.stream, first_offset=self._first, end_offset=FAR)
        elif task == "store_offset":
            self._storing = self.next_offset
            self._checker.stores(self.name, self._storing)
            self.ask("store_offset", stream=self._checker.stream, name=self.name, offset=self._storing)
        elif task == "range":
            wait: dict[str, Any] = {} if self._ending else {"beyond": self.next_offset, "wait_ms": WAIT_MS}
            self.ask("range", stream=self._checker.stream, **wait)
        else:
            self._read(self.next_offset)

    def _read(self, first: int) -> None:
        self._first = first
        place: dict[str, Any] = {"first_offset": first, "end_offset": FAR, "bytes_max": self.random.choice(BYTES)}
        self.ask("read", stream=self._checker.stream, **place)

    # Answers.

    def hear_refusal(self, asked: str, fields: Fields) -> None:
        if self._ending and fields["error"] == data_form.NOT_NOW and asked == "hello":
            # This broker has no part of the log.
            self._read_to_end.add(self._place)

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        machine = self.machine
        if machine is None:
            # The process that reported the end is gone.
            self.leave_broker()
            return
        match asked:
            case "range":
                self._checker.said_end(machine, fields["end_offset"], self._known)
                if fields["first_offset"]:
                    raise BrokenPromise(ROWS, f"{self._checker.stream} is to keep everything, and {fields} is left")
            case "read":
                self._look(machine, fields, payload)
            case "index":
                self._look_at_index(machine, fields["chunks"])
            case "offset_at":
                self._checker.found_time(self._time_us, fields["offset"], self._known)
            case "store_offset":
                self._checker.has_stored(self.name, self._storing)
            case _:
                raise AssertionError(f"there was no request to {asked}")
        if not self._ending:
            self.go_on(self.random.randint(0, 40))
        elif self.next_offset < self._checker.known_end(machine.life):
            self._read(self.next_offset)
        else:
            self._read_to_end.add(machine.name)
            self.leave_broker()

    def _look(self, machine: Machine, fields: Fields, payload: bytes) -> None:
        rows = rows_of(fields, payload)
        if not rows and self._first < self._known:
            raise BrokenPromise(ROWS, f"{machine.name} has {self._checker.stream} to {self._known}, not {self._first}")
        self._checker.read(self._first, rows, fields["ends"], fields["next_offset"])
        if rows:
            self._checker.check_end(machine, rows[-1].offset + 1)
        if self._first <= self.next_offset:
            self.next_offset = max(self.next_offset, fields["next_offset"])

    def _look_at_index(self, machine: Machine, chunks: list[list[int]]) -> None:
        end = chunks[0][0] if chunks else 0
        for first, last, count, *_ in chunks:
            if first != end or last - first + 1 != count:
                raise BrokenPromise(ROWS, f"the chunks of {self._checker.stream} do not follow each other: {chunks}")
            end = last + 1
        if (chunks and chunks[0][0] > self._first) or max(end, self._first) < self._known:
            raise BrokenPromise(ROWS, f"the index of {self._checker.stream} is {chunks}, from {self._first} on")
        self._checker.check_end(machine, end)
