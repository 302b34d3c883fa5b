"""The log's lane on a real directory, with the compiled writer and with the plain thread: order, errors, its end."""

from __future__ import annotations

import errno
import os
import resource
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from pandomq.journal.effects import (
    Completion,
    Create,
    Delete,
    Effect,
    FileName,
    Lane,
    ListFiles,
    MeasureSpace,
    Read,
    Rename,
    Request,
    Resize,
    SyncFile,
    Ticket,
    Write,
)
from pandomq.runtime.disk import log_lane
from pandomq.runtime.disk.disk import Disk, InlineDisk
from pandomq.runtime.disk.log_lane import COMPILED, WRITER_FILES_MAX
from pandomq.runtime.disk.sync_times import SyncTimes
from tests.support.examples import examples

NAMES = [FileName(name) for name in "abc"]
A, B = NAMES[:2]
BUSY_S = 15.0


class Driver:
    """A disk whose caller uses the log's lane alone."""

    def __init__(self, directory: Path, *, compiled: bool) -> None:
        self.times = SyncTimes()
        self.disk = Disk(directory, self.times, compiled=compiled)
        self._ready = select.poll()
        self._ready.register(self.disk.fd, select.POLLIN)
        self._tickets = 0

    def submit(self, *effects: Effect, lane: Lane = Lane.LOG) -> None:
        requests = [Request(Ticket(self._tickets + place), lane, effect) for place, effect in enumerate(effects)]
        self._tickets += len(effects)
        self.disk.submit(requests)

    def get(self, count: int) -> list[Completion]:
        found: list[Completion] = []
        while len(found) < count:
            assert self._ready.poll(BUSY_S * 1000)
            found += self.disk.take_completions()
        return found

    def perform(self, *effects: Effect, lane: Lane = Lane.LOG) -> list[Completion]:
        self.submit(*effects, lane=lane)
        return self.get(len(effects))

    def errors(self, *effects: Effect) -> list[int]:
        """Their numbers, or 0."""
        return [completion.error.number if completion.error else 0 for completion in self.perform(*effects)]


@pytest.fixture(
    params=[
        pytest.param(True, id="writer", marks=pytest.mark.skipif(not COMPILED, reason="the writer is not compiled")),
        pytest.param(False, id="thread"),
    ]
)
def compiled(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def driver(tmp_path: Path, compiled: bool) -> Iterator[Driver]:
    driver = Driver(tmp_path, compiled=compiled)
    yield driver
    if driver.disk.fd >= 0:
        driver.disk.close()


def some_effect(random: Random) -> Effect:
    file = random.choice(NAMES)
    chunks = tuple(random.randbytes(random.choice((0, 1, 7, 600))) for _ in range(random.randint(1, 3)))
    kinds: list[Callable[[], Effect]] = [
        lambda: Create(file),
        lambda: Read(file, random.randrange(100), random.choice((1, 50, 5000))),
        lambda: Resize(file, random.randrange(2000)),
        lambda: Rename(file, random.choice(NAMES)),
        lambda: Delete(file),
        lambda: SyncFile(file),
        lambda: Write(file, random.choice((0, 100, random.randrange(3000))), chunks),
    ]
    (kind,) = random.choices(kinds, [5, 3, 2, 1, 1, 10, 30])
    return kind()


@pytest.mark.parametrize("seed", range(examples(30)))
def test_requests_have_the_results_that_they_have_one_after_the_other(
    tmp_path: Path, compiled: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    monkeypatch.setattr(log_lane, "RING_REQUESTS_MAX", random.choice((1, 3, 1000)))
    (tmp_path / "expected").mkdir()
    alone = InlineDisk(tmp_path / "expected")
    driver = Driver(tmp_path / "found", compiled=compiled)
    expected: list[Completion] = []
    found: list[Completion] = []
    for _ in range(30):
        effects = [some_effect(random) for _ in range(random.randint(1, 20))]
        first = len(expected)
        for place, effect in enumerate(effects):
            alone.submit([Request(Ticket(first + place), Lane.LOG, effect)])
            expected += alone.take_completions()
        driver.submit(*effects)
        if random.random() < 0.5:
            found += driver.disk.take_completions()
        if random.random() < 0.3:
            found += driver.get(len(expected) - len(found))
    driver.disk.close()
    alone.close()
    found += driver.disk.take_completions()
    assert found == expected
    contents = [
        {name: (tmp_path / place / name).read_bytes() for name in NAMES if (tmp_path / place / name).exists()}
        for place in ("found", "expected")
    ]
    assert contents[0] == contents[1]


def test_more_requests_than_the_ring_has_room_for_wait_in_order(
    tmp_path: Path, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lane, "RING_REQUESTS_MAX", 4)
    driver = Driver(tmp_path, compiled=compiled)
    driver.perform(Create(A), Write(A, 0, (b"0",)))
    driver.submit(*(Write(A, number, (b"%d" % (number % 10),)) for number in range(1000)), SyncFile(A))
    assert [completion.ticket for completion in driver.get(1001)] == list(range(2, 1003))
    driver.disk.close()
    assert (tmp_path / "a").read_bytes() == b"0123456789" * 100


def test_a_failed_write_fails_the_sync_behind_it(driver: Driver, tmp_path: Path) -> None:
    driver.perform(Create(A), Write(A, 0, (b"x",)))
    assert driver.errors(Write(A, 1, (b"y",)), SyncFile(A)) == [0, 0]
    with files_limited_to(1000):
        assert driver.errors(Write(A, 900, (bytes(60), b"z" * 200)), SyncFile(A)) == [errno.EFBIG] * 2
    # The system had written a part.
    assert (tmp_path / "a").stat().st_size == 1000
    assert driver.errors(Write(A, 900, (bytes(200),)), SyncFile(A)) == [0, 0]


@contextmanager
def files_limited_to(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_failed_sync_does_not_fail_the_writes_before_it(driver: Driver, tmp_path: Path) -> None:
    """The system refuses to sync the null device."""
    (tmp_path / "a").symlink_to("/dev/null")
    for _ in range(3):
        assert driver.errors(Write(A, 0, (b"x",)), Write(A, 7, (b"x",))) == [0, 0]
        assert driver.errors(Write(A, 0, (b"x",)), SyncFile(A)) == [0, errno.EINVAL]


def test_a_full_disk_is_reported_by_its_number_and_text(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/dev/full")
    (completion,) = driver.perform(Write(A, 0, (b"x",)))
    assert completion.error is not None
    assert (completion.error.number, completion.error.text) == (errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_more_files_are_written_than_the_writer_keeps_open(driver: Driver, tmp_path: Path) -> None:
    names = [FileName(f"file-{number}") for number in range(3 * WRITER_FILES_MAX)]
    for turn in range(3):
        for name in names:
            driver.perform(*([Create(name)] if not turn else []), Write(name, turn, (b"x",)), SyncFile(name))
    assert {(tmp_path / name).read_bytes() for name in names} == {b"xxx"}


def test_a_file_is_written_although_no_more_files_may_be_opened(driver: Driver, tmp_path: Path) -> None:
    driver.perform(Create(A))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = max(int(link.name) for link in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened, hard))
    unused = []
    try:
        with suppress(OSError):
            while True:
                unused.append(os.dup(driver.disk.fd))
        found = [driver.errors(Write(A, number, (b"x",)), SyncFile(A)) for number in range(3)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in unused:
            os.close(fd)
    assert found == [[0, 0]] * 3
    assert driver.errors(Write(A, 3, (b"x",)), SyncFile(A)) == [0, 0]
    assert (tmp_path / "a").read_bytes() == b"xxxx"


@pytest.mark.parametrize("lane", [Lane.LOG, Lane.BULK])
@pytest.mark.parametrize("effect", [Delete(A), Rename(A, B)])
def test_a_file_that_lost_its_name_is_closed(driver: Driver, tmp_path: Path, effect: Effect, lane: Lane) -> None:
    driver.perform(Create(A), Write(A, 0, (b"x",)), SyncFile(A))
    driver.perform(Write(A, 0, (b"x",)), SyncFile(A))
    driver.perform(effect, lane=lane)
    (errors, _), opened = driver.perform(Write(A, 0, (b"y",)), MeasureSpace()), held(tmp_path)
    assert errors.error is not None and errors.error.number == errno.ENOENT
    # Freeing the space of a file takes time, so a thread of the disk does it.
    driver.perform(ListFiles())
    assert not [path for path in opened if path.startswith(str(tmp_path / "a"))]


def test_a_lane_goes_on_after_a_file_system_refused_to_close_a_file(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Network file systems report the loss of earlier writes then."""
    close = os.close

    def refused(fd: int) -> None:
        close(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    names = [FileName(f"file-{number}") for number in range(2 * WRITER_FILES_MAX)]
    monkeypatch.setattr(os, "close", refused)
    try:
        for name in names:
            assert driver.errors(Create(name), Write(name, 0, (b"x",)), SyncFile(name)) == [0, 0, 0]
        assert driver.perform(*(Delete(name) for name in names), lane=Lane.BULK)
        assert driver.errors(MeasureSpace()) == [0]
        assert driver.errors(Create(A), Write(A, 0, (b"x",)), Write(A, 1, (b"y",))) == [0, 0, 0]
    finally:
        monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"xy"


def held(directory: Path) -> list[str]:
    paths = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [path for path in paths if path.startswith(str(directory))]


def test_closing_waits_for_all_requests_and_leaves_nothing_open(tmp_path: Path, compiled: bool) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    driver = Driver(tmp_path, compiled=compiled)
    effects: list[Effect] = [Create(A), Write(A, 0, (b"x",)), SyncFile(A), Create(B), Write(B, 0, (b"x",))]
    effects += [Write(A, number, (b"y",)) for number in range(500)]
    driver.submit(*effects, SyncFile(A), Resize(A, 400), Write(A, 400, (b"z",)))
    driver.disk.close()
    completions = driver.disk.take_completions()
    assert [completion.ticket for completion in completions] == list(range(508))
    assert not any(completion.error for completion in completions)
    assert (tmp_path / "a").read_bytes() == b"y" * 400 + b"z"
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert not threads("disk-")
    assert driver.disk.take_completions() == []


def threads(prefix: str) -> list[str]:
    """The system's threads of this process with such names."""
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return [name for name in names if name.startswith(prefix)]


def test_syncs_of_the_log_are_counted_and_timed(driver: Driver) -> None:
    driver.perform(Create(A), Write(A, 0, (b"x",)), SyncFile(A))
    for number in range(1, 10):
        driver.perform(Write(A, number, (b"x",)), SyncFile(A))
    view = driver.times.view()
    assert view.count == 10
    assert 0 < view.longest_s <= view.total_s


def test_no_thread_runs_before_there_is_a_disk() -> None:
    """Tests start brokers as copies of a process that has imported everything."""
    script = "import os, pandomq.runtime.server; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
