"""A machine as far as it does not matter what runs on it: a disk, a clock that drifts, pauses, and lives.

A life is what a crash ends. Whatever was to happen later in a life does not happen in the next; whatever was to happen
during a pause happens after it, in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from random import Random

from pandomq.journal.effects import Completion, Request
from pandomq.sim.agenda import Agenda
from pandomq.sim.clock import SteadyClock
from pandomq.sim.disk import NEVER_MS, SimDisk
from pandomq.sim.old_copy import Files, marked
from pandomq.sim.trace import Trace


class Host:
    def __init__(
        self,
        name: str,
        agenda: Agenda,
        trace: Trace,
        random: Random,
        disk: SimDisk,
        lives: Iterator[int],
        drift_permille: int,
    ) -> None:
        """`lives` numbers the lives of all machines, so that each is another one."""
        self.name = name
        self._agenda = agenda
        self._trace = trace
        self._border = name.encode()
        self._random = random
        self.disk = disk
        self._lives = lives
        self.steady = SteadyClock(agenda, drift_permille)
        self.life = 0
        self._paused_until_ms = 0
        self._waiting: deque[Callable[[], None]] = deque()
        """What happens when a pause is over."""
        self._disk_due_ms = NEVER_MS
        self.wounded = False
        """Its disk lost something that had been synced, and it has not got it back yet."""
        self.copy: Files | None = None
        """Of its store, made a while ago."""

    # What runs on it.

    @property
    def reachable(self) -> bool:
        """Something runs, though it may pause."""
        raise NotImplementedError

    def completed(self, completions: list[Completion]) -> None:
        """What the disk did."""
        raise NotImplementedError

    def abandon_store(self) -> None:
        """Whatever runs ends, and its power with it; what comes next does not begin a cluster again."""
        raise NotImplementedError

    @property
    def world_ms(self) -> int:
        return self._agenda.now_ms

    @property
    def awake(self) -> bool:
        return self.reachable and self._agenda.now_ms >= self._paused_until_ms

    # Pauses and lives.

    def begin_life(self) -> None:
        self.life = next(self._lives)
        self._disk_due_ms = NEVER_MS

    def pause(self, for_ms: int) -> None:
        """The process does nothing for a while; the disk and the network go on."""
        self._trace.say(self.name, f"does nothing for {for_ms} ms")
        self._paused_until_ms = max(self._paused_until_ms, self._agenda.now_ms + for_ms)

    def wake_up(self) -> None:
        """A pause ends now."""
        self._paused_until_ms = min(self._paused_until_ms, self._agenda.now_ms)
        self._agenda.after(0, self._go_on)

    def when_running(self, call: Callable[[], None]) -> None:
        if not self._waiting and self._agenda.now_ms >= self._paused_until_ms:
            call()
            return
        if not self._waiting:
            self._agenda.at(self._paused_until_ms, self._go_on)
        self._waiting.append(call)

    def _go_on(self) -> None:
        if self._waiting and self._agenda.now_ms < self._paused_until_ms:
            self._agenda.at(self._paused_until_ms, self._go_on)
            return
        while self._waiting:
            self._waiting.popleft()()

    def in_life(self, call: Callable[[], None]) -> Callable[[], None]:
        """The call, unless the life is another one by then."""
        life = self.life

        def called() -> None:
            if self.life == life and self.reachable:
                call()

        return lambda: self.when_running(called)

    # What a disk loses for good.

    def wipe(self) -> None:
        """It is replaced by an empty one."""
        self._trace.say(self.name, "gets an empty disk")
        self.wounded = True
        self.abandon_store()
        self.disk.wipe()

    def copy_store(self) -> None:
        self._trace.say(self.name, "its store is copied")
        self.copy = self.disk.copy()

    def put_back(self, *, mark: bool) -> None:
        """What it has is replaced by the copy."""
        assert self.copy is not None
        self._trace.say(self.name, f"gets {'a backup' if mark else 'an old copy'} of its store")
        self.wounded = True
        self.abandon_store()
        self.disk.put_back(marked(self.copy) if mark else self.copy)
        self.copy = None

    # The disk.

    def submit(self, requests: list[Request]) -> None:
        if requests:
            self._trace.asked(self._border, requests)
            self.disk.submit(requests, self._agenda.now_ms)
        self._await_disk()

    def disk_hurries(self) -> None:
        """What it had put off is done soon."""
        self.disk.hurry(self._agenda.now_ms)
        if self.reachable:
            self._await_disk()

    def _await_disk(self) -> None:
        due_ms = self.disk.telling_ms
        if due_ms < self._disk_due_ms:
            self._disk_due_ms = due_ms
            self._agenda.at(due_ms, self.in_life(self._disk_ready))

    def _disk_ready(self) -> None:
        if self._agenda.now_ms < self._disk_due_ms:
            # What this was to look at has been looked at since.
            return
        self._disk_due_ms = NEVER_MS
        completions = self.disk.take_completions(self._agenda.now_ms)
        if completions:
            self.completed(completions)
        else:
            self._await_disk()
