"""The part of a machine that does not depend on the software on it: a disk, a clock that drifts, pauses, and lives.

A crash ends a life. Calls that were scheduled in one life do not happen in the next one; calls that were due during a
pause happen after it, in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.journal.effects import Completion, FileName, Request
from pandomq.sim.agenda import Agenda
from pandomq.sim.clock import SteadyClock
from pandomq.sim.disks.disk import NEVER_MS, SimDisk
from pandomq.sim.disks.files import Loss
from pandomq.sim.disks.old_copy import Files, marked
from pandomq.sim.trace import WorldTrace

if TYPE_CHECKING:
    from pandomq.replica.replica import Replica

PAGES: Final = "pages-"
"""The beginning of the names of page files."""


class Host:
    def __init__(
        self,
        name: str,
        agenda: Agenda,
        trace: WorldTrace,
        random: Random,
        disk: SimDisk,
        lives: Iterator[int],
        drift_permille: int,
    ) -> None:
        """`lives` numbers the lives of all machines, so that no two lives have the same number."""
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
        """The calls that happen when the pause is over."""
        self._disk_due_ms = NEVER_MS
        self.wounded = False
        """Whether the disk has lost data that had been synced, and the machine has not got it back yet."""
        self.copy: Files | None = None
        """A copy of the store that was made a while ago."""

    # The software on the machine.

    @property
    def reachable(self) -> bool:
        """Whether a process runs, even if it is paused."""
        raise NotImplementedError

    @property
    def up(self) -> bool:
        """Whether a process runs, or another one is about to replace it."""
        return self.reachable

    @property
    def replica(self) -> Replica | None:
        """The replica; None while no process runs, or the process reads its store."""
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def crash(self, loss: Loss) -> None:
        """Kills the process; with any loss but NONE the machine fails with it."""
        raise NotImplementedError

    def completed(self, completions: list[Completion]) -> None:
        """The disk has completed these requests."""
        raise NotImplementedError

    def abandon_store(self) -> None:
        """Ends the process, as by a power loss; the machine's next process does not found a cluster again."""
        raise NotImplementedError

    @property
    def world_ms(self) -> int:
        return self._agenda.now_ms

    @property
    def awake(self) -> bool:
        return self.reachable and self._agenda.now_ms >= self._paused_until_ms

    @property
    def paused_until_ms(self) -> int:
        """The end of the pause in the world's time; it may be over."""
        return self._paused_until_ms

    # Pauses and lives.

    def begin_life(self) -> None:
        self.life = next(self._lives)
        self._disk_due_ms = NEVER_MS

    def pause(self, for_ms: int) -> None:
        """Pauses the process; the disk and the network continue."""
        self._trace.say(self.name, f"does nothing for {for_ms} ms")
        self._paused_until_ms = max(self._paused_until_ms, self._agenda.now_ms + for_ms)

    def wake_up(self) -> None:
        """Ends the pause now."""
        self._paused_until_ms = min(self._paused_until_ms, self._agenda.now_ms)
        self._agenda.after(0, self._go_on)

    def leap(self, by_ms: int) -> None:
        """The world's time has just advanced by so much in one step, and all scheduled calls were postponed by the same
        time. This postpones the end of a pause, too, and the requests to the disk."""
        self.steady.leap(by_ms)
        self.disk.leap(by_ms)
        if self._disk_due_ms != NEVER_MS:
            self._disk_due_ms += by_ms
        if self._paused_until_ms > self._agenda.now_ms - by_ms:
            self._paused_until_ms += by_ms

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
        """Returns the call, which does nothing if the life has ended by then."""
        life = self.life

        def called() -> None:
            if self._waiting or self._agenda.now_ms < self._paused_until_ms:
                self.when_running(lambda: call() if self.life == life and self.reachable else None)
            elif self.life == life and self.reachable:
                call()

        return called

    # Permanent losses of a disk.

    @property
    def rotten_pages(self) -> FileName | None:
        """Returns a damaged page file that is still in use. The broker reads a page only when its messages are needed,
        so it may catch up with the log, and be elected, long before it finds the damage."""
        file = self.disk.damaged_file
        return file if file is not None and file.startswith(PAGES) else None

    @property
    def lacks_data(self) -> bool:
        """Whether synced data is missing from the disk, even if the broker has not noticed."""
        return self.wounded or self.rotten_pages is not None

    def wipe(self) -> None:
        """Replaces the disk by an empty one."""
        self._trace.say(self.name, "gets an empty disk")
        self.wounded = True
        self.abandon_store()
        self.disk.wipe()

    def copy_store(self) -> None:
        self._trace.say(self.name, "its store is copied")
        self.copy = self.disk.copy()

    def put_back(self, *, mark: bool) -> None:
        """Replaces the store by the copy."""
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
        elif self._disk_due_ms == NEVER_MS:
            self._await_disk()

    def disk_hurries(self) -> None:
        """The disk finishes soon everything that it had postponed."""
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
            # A later call has already handled these completions.
            return
        self._disk_due_ms = NEVER_MS
        completions = self.disk.take_completions(self._agenda.now_ms)
        if completions:
            self.completed(completions)
        else:
            self._await_disk()
