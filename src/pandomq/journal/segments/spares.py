"""The file of the next segment, made before it is needed.

Creating a file, setting space aside for it and syncing its directory take longer than a sync of the log, so it is done
in the bulk lane while the segment before is still being filled. A full disk shows here first, before anything depends
on it: the reserve is deleted, and the broker ends only if a segment is needed and cannot be created.
"""

from collections.abc import Callable, Iterator

from pandomq.journal.effects import Create, Delete, FileName, Lane, SyncDirectory, SyncFile, Write
from pandomq.journal.limits import JournalSettings
from pandomq.journal.names import segment_file
from pandomq.journal.outbox import DiskRequests, fault_of
from pandomq.journal.segments.layout import Identity, body_offset, encode_identity
from pandomq.journal.space import Space, is_full
from pandomq.journal.work import DiskFailed, Task, Work, perform


class Spares:
    __slots__ = (
        "_identity",
        "_numbers",
        "_outbox",
        "_resting",
        "_settings",
        "_space",
        "_spare",
        "_unready",
        "on_ready",
    )

    def __init__(
        self, settings: JournalSettings, identity: Identity, outbox: DiskRequests, space: Space, numbers: Iterator[int]
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._outbox = outbox
        self._space = space
        self._numbers = numbers
        self._spare: int | None = None
        """The segment that is not in use yet; its file may still be in the making."""
        self._unready: set[int] = set()
        """Segments, spare or in use, whose files are being created."""
        self._resting = False
        self.on_ready: Callable[[], None] = lambda: None
        """Called when a file is ready; something may be waiting for it."""

    def prepare(self) -> None:
        """Creates a spare, unless there is one or there was no space for it a moment ago."""
        if self._spare is None and not self._resting:
            self._spare = self._start()

    def tick(self) -> None:
        self._resting = False

    def take(self) -> int:
        """The number of the next segment; it may be used as soon as `is_ready`."""
        number = self._spare if self._spare is not None else self._start()
        self._spare = None
        return number

    def is_ready(self, number: int) -> bool:
        return number not in self._unready

    def _start(self) -> int:
        number = next(self._numbers)
        self._unready.add(number)
        Task(self._outbox, Lane.BULK, self._making(number), lambda failure: self._made(number, failure)).start()
        return number

    def _making(self, number: int) -> Work[DiskFailed | None]:
        file = segment_file(number)
        slot_count = self._settings.slot_count
        reserve_bytes = body_offset(slot_count) + self._settings.segment_bytes
        sector = encode_identity(self._identity, number, slot_count)
        created = False
        try:
            yield from self._create(file, reserve_bytes)
            created = True
            yield from perform(Write(file, 0, (sector,)), SyncFile(file), SyncDirectory())
        except DiskFailed as failure:
            if not is_full(failure):
                raise
            if created:
                yield from perform(Delete(file))
            return failure
        return None

    def _create(self, file: FileName, reserve_bytes: int) -> Work[None]:
        for _ in ("with the reserve", "without it"):
            try:
                yield from perform(Create(file, reserve_bytes))
            except DiskFailed as failure:
                if not is_full(failure):
                    raise
                yield from self._space.give_up_reserve()
            else:
                return
        # The remaining space may do for a while: acks are small.
        yield from perform(Create(file))

    def _made(self, number: int, failure: DiskFailed | None) -> None:
        if failure is None:
            self._unready.discard(number)
            self.on_ready()
            return
        if number != self._spare:
            raise fault_of(failure.effect, failure.error)
        self._unready.discard(number)
        self._spare = None
        self._resting = True
