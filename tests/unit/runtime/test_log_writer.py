"""The compiled writer of the log: its ring, its runs, and its thread, which needs no interpreter."""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandomq.runtime.disk.log_lane import COMPILED

if not COMPILED:
    pytest.skip("the writer is not compiled", allow_module_level=True)

from pandomq.runtime.disk._log_writer import LogWriter

RING = 8
RUN_BYTES = 1000
BUSY_S = 15.0


class Caller:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT)
        self.writer = LogWriter(self.wake_fd, requests_max=RING, run_bytes_max=RUN_BYTES)

    def wait(self) -> int:
        """Returns the number of times that the writer woke this caller since the last call."""
        assert select.select([self.wake_fd], [], [], BUSY_S)[0]
        return os.eventfd_read(self.wake_fd)

    def get(self, count: int) -> list[tuple[int, int, float]]:
        self.writer.submit()
        found: list[tuple[int, int, float]] = []
        while len(found) < count:
            self.wait()
            found += self.writer.take()
        return found

    def close(self) -> None:
        self.writer.stop()
        os.close(self.fd)
        os.close(self.wake_fd)


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    caller = Caller(tmp_path / "log")
    yield caller
    caller.close()


def test_a_full_ring_refuses_requests_until_results_are_taken(caller: Caller) -> None:
    writer, fd = caller.writer, caller.fd
    assert all(writer.add_write(number, fd, number, (b"%d" % number,)) for number in range(RING))
    assert not writer.add_write(90, fd, 50, (b"x",))
    assert not writer.add_sync(91, fd)
    assert [ticket for ticket, _, _ in caller.get(RING)] == list(range(RING))
    assert writer.add_sync(92, fd)
    assert [(ticket, error) for ticket, error, _ in caller.get(1)] == [(92, 0)]
    assert caller.path.read_bytes() == b"01234567"


def test_results_that_nobody_has_taken_occupy_the_ring(caller: Caller) -> None:
    writer, fd = caller.writer, caller.fd
    for number in range(RING):
        assert writer.add_write(number, fd, number, (b"x",))
        writer.submit()
    deadline = time.monotonic() + BUSY_S
    while caller.path.stat().st_size < RING and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not writer.add_sync(90, fd)
    assert len(caller.get(RING)) == RING


def test_the_caller_is_woken_once_for_several_runs(caller: Caller) -> None:
    for number in range(RING):
        caller.writer.add_write(number, caller.fd, number * 1000, (bytes(900),))
        caller.writer.submit()
    deadline = time.monotonic() + BUSY_S
    while caller.path.stat().st_size < RING * 1000 - 100 and time.monotonic() < deadline:
        time.sleep(0.001)
    caller.writer.stop()
    assert caller.wait() == 1
    assert len(caller.writer.take()) == RING


def test_requests_are_carried_out_while_the_interpreter_is_busy(caller: Caller) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        caller.writer.add_write(1, caller.fd, 0, (b"x",))
        caller.writer.add_sync(2, caller.fd)
        caller.writer.submit()
        end = time.monotonic() + BUSY_S
        found: list[tuple[int, int, float]] = []
        # Neither call gives the interpreter's lock away.
        while len(found) < 2 and time.monotonic() < end:
            found += caller.writer.take()
    finally:
        sys.setswitchinterval(before)
    assert [(ticket, error) for ticket, error, _ in found] == [(1, 0), (2, 0)]


def test_a_write_of_more_chunks_than_the_system_takes_at_once(caller: Caller) -> None:
    chunks = tuple(b"%d" % (number % 7) * (number % 3) for number in range(5000))
    caller.writer.add_write(1, caller.fd, 3, chunks)
    caller.writer.add_write(2, caller.fd, 3 + sum(map(len, chunks)), (b"end",))
    assert [error for _, error, _ in caller.get(2)] == [0, 0]
    assert caller.path.read_bytes() == bytes(3) + b"".join(chunks) + b"end"


def test_a_write_does_not_overtake_another_to_the_same_place(caller: Caller) -> None:
    for ticket, (offset, data) in enumerate([(0, b"11"), (2, b"222"), (0, b"3"), (1, b"4444")]):
        caller.writer.add_write(ticket, caller.fd, offset, (data,))
    caller.get(4)
    assert caller.path.read_bytes() == b"34444"


def test_a_run_is_bounded(caller: Caller) -> None:
    """Requests fail together with those of their run only."""
    for ticket in range(3):
        caller.writer.add_write(ticket, caller.fd, ticket * 400, (bytes(400),))
    caller.writer.add_sync(3, caller.fd)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, hard))
    try:
        results = [(ticket, error) for ticket, error, _ in caller.get(4)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert results == [(0, 0), (1, 0), (2, errno.EFBIG), (3, errno.EFBIG)]
    assert caller.path.stat().st_size == 900


def test_only_the_last_sync_of_a_run_has_a_time(caller: Caller) -> None:
    caller.writer.add_write(1, caller.fd, 0, (b"x",))
    caller.writer.add_sync(2, caller.fd)
    caller.writer.add_write(3, caller.fd, 1, (b"y",))
    caller.writer.add_sync(4, caller.fd)
    times = [synced_s for _, _, synced_s in caller.get(4)]
    assert [synced_s > 0 for synced_s in times] == [False, False, False, True]


def test_chunks_are_kept_until_their_request_is_taken(caller: Caller) -> None:
    chunks = (bytes(500),)
    before = sys.getrefcount(chunks)
    caller.writer.add_write(1, caller.fd, 0, chunks)
    assert sys.getrefcount(chunks) == before + 1
    caller.get(1)
    assert sys.getrefcount(chunks) == before
    with pytest.raises(TypeError, match="a chunk is bytes, not bytearray"):
        caller.writer.add_write(2, caller.fd, 0, (bytearray(3),))  # type: ignore[arg-type]


def test_a_stopped_writer_has_done_everything_and_takes_nothing(caller: Caller) -> None:
    caller.writer.add_write(1, caller.fd, 0, (b"x",))
    caller.writer.stop()
    caller.writer.stop()
    assert [ticket for ticket, _, _ in caller.writer.take()] == [1]
    with pytest.raises(ValueError, match="stopped"):
        caller.writer.add_sync(2, caller.fd)


def test_a_writer_that_was_dropped_still_writes_what_it_has(tmp_path: Path) -> None:
    caller = Caller(tmp_path / "log")
    caller.writer.add_write(1, caller.fd, 0, (b"x" * 100,))
    caller.writer.submit()
    del caller.writer
    caller.wait()
    assert caller.path.read_bytes() == b"x" * 100
    os.close(caller.fd)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_copy_of_the_process_has_no_thread_and_ends(caller: Caller) -> None:
    caller.writer.add_write(1, caller.fd, 0, (b"x",))
    child = os.fork()
    if not child:
        caller.writer.stop()
        del caller.writer
        os._exit(7)
    deadline = time.monotonic() + BUSY_S
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended and os.waitstatus_to_exitcode(status) == 7
    # The parent's own thread is as it was.
    assert len(caller.get(1)) == 1
