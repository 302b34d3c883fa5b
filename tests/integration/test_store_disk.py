"""The journal's disk on a real directory: threads, joined syncs, and errors of the operating system."""

from __future__ import annotations

import errno
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
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
    SyncDirectory,
    SyncFile,
    Ticket,
    Write,
)
from pandomq.journal.faults import DiskFullFault, InUseFault, ReadOnlyFault
from pandomq.runtime.disk import disk_runs
from pandomq.runtime.disk.disk import Disk
from pandomq.runtime.disk.disk_files import DirectoryFiles
from pandomq.runtime.disk.disk_lock import lock_holder
from pandomq.runtime.disk.disk_runs import joined
from tests.integration.store_writer import SMALL, Keeper, payload_of

A, B = FileName("a"), FileName("b")


def requests(*effects: Effect, lane: Lane = Lane.LOG) -> list[Request]:
    return [Request(Ticket(place), lane, effect) for place, effect in enumerate(effects)]


@pytest.fixture
def files(tmp_path: Path) -> Iterator[DirectoryFiles]:
    files = DirectoryFiles(tmp_path)
    yield files
    files.close()


def test_effects_change_the_files_as_described(files: DirectoryFiles, tmp_path: Path) -> None:
    files.perform(Create(A))
    with pytest.raises(FileExistsError):
        files.perform(Create(A))
    files.perform(Write(A, 10, (b"abc", b"", b"def")))
    assert files.perform(Read(A, 8, 4)) == b"\0\0ab"
    assert files.perform(Read(A, 14, 100)) == b"ef"
    files.perform(SyncFile(A))
    files.perform(Resize(A, 12))
    files.perform(Rename(A, B))
    files.perform(SyncDirectory())
    assert files.perform(ListFiles()) == ((B, 12),)
    assert (tmp_path / "b").read_bytes() == b"\0" * 10 + b"ab"
    space = files.perform(MeasureSpace())
    assert isinstance(space, int) and space > 0
    files.perform(Delete(B))
    assert files.perform(ListFiles()) == ()
    with pytest.raises(FileNotFoundError):
        files.perform(Read(B, 0, 1))


def test_space_is_set_aside_without_changing_the_size(files: DirectoryFiles, tmp_path: Path) -> None:
    files.perform(Create(A, 1024 * 1024))
    status = (tmp_path / "a").stat()
    assert status.st_size == 0
    assert status.st_blocks * 512 >= 1024 * 1024
    files.perform(Resize(A, 0))
    assert (tmp_path / "a").stat().st_blocks == 0


def test_many_chunks_are_one_write(files: DirectoryFiles, tmp_path: Path) -> None:
    chunks = tuple(bytes([number % 256]) * 7 for number in range(5000))
    files.perform(Create(A))
    files.perform(Write(A, 3, chunks))
    assert (tmp_path / "a").read_bytes() == bytes(3) + b"".join(chunks)


def test_more_files_than_may_be_open(files: DirectoryFiles) -> None:
    names = [FileName(f"file-{number}") for number in range(200)]
    for name in names:
        files.perform(Create(name))
        files.perform(Write(name, 0, (name.encode(),)))
    assert all(files.perform(Read(name, 0, 99)) == name.encode() for name in names)


def test_joined_writes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_runs, "RUN_BYTES_MAX", 100)
    log = FileName("log")
    effects = [effect for at in range(0, 200, 40) for effect in (Write(log, at, (bytes(40),)), SyncFile(log))]
    runs = list(joined(requests(*effects)))
    assert [len(run.requests) for run in runs] == [4, 4, 2]
    assert all(isinstance(run.effects[-1], SyncFile) for run in runs)


def test_syncs_and_writes_are_joined() -> None:
    effects: list[Effect] = [
        Write(A, 0, (b"1",)),
        Write(A, 100, (b"t",)),
        SyncFile(A),
        Write(A, 1, (b"2",)),
        Write(A, 101, (b"u",)),
        SyncFile(A),
        Write(B, 0, (b"x",)),
        SyncFile(B),
        Resize(B, 1),
        SyncFile(A),
    ]
    runs = list(joined(requests(*effects)))
    assert [run.effects for run in runs] == [
        [Write(A, 0, (b"1", b"2")), Write(A, 100, (b"t", b"u")), SyncFile(A)],
        [Write(B, 0, (b"x",)), SyncFile(B)],
        [Resize(B, 1)],
        [SyncFile(A)],
    ]
    assert [request.ticket for run in runs for request in run.requests] == list(range(10))


def test_a_write_does_not_overtake_another_to_the_same_place() -> None:
    effects: list[Effect] = [
        Write(A, 0, (b"11",)),
        Write(A, 2, (b"222",)),
        Write(A, 0, (b"3",)),
        Write(A, 1, (b"4444",)),
    ]
    content = bytearray(6)
    for run in joined(requests(*effects)):
        for effect in run.effects:
            assert isinstance(effect, Write)
            data = b"".join(effect.chunks)
            content[effect.offset : effect.offset + len(data)] = data
    assert bytes(content) == b"34444\0"


class Waiting:
    """A disk, and a caller that waits for its completions."""

    def __init__(self, directory: Path) -> None:
        self.disk = Disk(directory)
        self.ready = select.poll()
        self.ready.register(self.disk.fd, select.POLLIN)

    def get(self, count: int) -> list[Completion]:
        found: list[Completion] = []
        while len(found) < count:
            assert self.ready.poll(10_000)
            found += self.disk.take_completions()
        return found


def test_lanes_answer_in_their_own_order(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    waiting.disk.submit(requests(Create(A), *[Write(A, n, (b"x",)) for n in range(100)], SyncFile(A)))
    waiting.disk.submit([Request(Ticket(1000 + n), Lane.BULK, MeasureSpace()) for n in range(50)])
    tickets = [completion.ticket for completion in waiting.get(152)]
    assert [ticket for ticket in tickets if ticket < 1000] == list(range(102))
    assert [ticket for ticket in tickets if ticket >= 1000] == list(range(1000, 1050))
    waiting.disk.close()


def test_errors_come_as_completions(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    waiting.disk.submit(requests(Read(A, 0, 1), lane=Lane.READ))
    (completion,) = waiting.get(1)
    assert completion.error is not None and completion.error.number == errno.ENOENT
    waiting.disk.close()


def test_a_deleted_file_is_let_go_by_all_lanes(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    waiting.disk.submit(requests(Create(A), Write(A, 0, (b"x",))))
    waiting.get(2)
    waiting.disk.submit(requests(Read(A, 0, 1), lane=Lane.READ))
    waiting.get(1)
    waiting.disk.submit(requests(Delete(A), lane=Lane.BULK))
    waiting.get(1)
    waiting.disk.submit(requests(MeasureSpace(), lane=Lane.READ))
    waiting.disk.submit(requests(MeasureSpace(), lane=Lane.LOG))
    waiting.get(2)
    held = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.exists() or link.is_symlink()]
    assert not [path for path in held if path.startswith(str(tmp_path / "a"))]
    waiting.disk.close()


def test_a_store_has_one_process(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    with pytest.raises(InUseFault, match=f"in use by process {os.getpid()}"):
        Disk(tmp_path)
    assert lock_holder(tmp_path) == f"process {os.getpid()}"
    imports = "import sys; from pathlib import Path; from pandomq.runtime.disk.disk import Disk"
    script = f"{imports}; Disk(Path(sys.argv[1]))"
    other = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert other.returncode == 1 and "is in use by process" in other.stderr
    keeper.close()
    assert lock_holder(tmp_path) is None
    Keeper(tmp_path).close()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="cannot open the store in"):
        Disk(tmp_path / "file" / "store")


# Small disks.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(tmp_path)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this system does not let us mount")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_a_full_disk_ends_it_and_corrupts_nothing(small_disk: Path) -> None:
    keeper = Keeper(small_disk)
    with pytest.raises(DiskFullFault, match="Free some space"):
        fill(keeper)
    durable = keeper.journal.durable_index
    assert durable > 100
    keeper.disk.close()
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    again = Keeper(small_disk)
    assert again.recovered is not None and again.recovered.damage is None
    assert again.recovered.last_index >= durable
    assert all(payload == payload_of(index) for index, payload in again.replayed)
    again.append(10)
    again.close()


def fill(keeper: Keeper) -> None:
    for _ in range(1000):
        keeper.append(20)
        while keeper.journal.durable_index < keeper.journal.last_index:
            keeper.wait()


def test_a_read_only_disk_is_refused(small_disk: Path) -> None:
    Keeper(small_disk, msgspec.structs.replace(SMALL, reserve_bytes=0)).close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(ReadOnlyFault, match="must be able to write to its data directory"):
        Keeper(small_disk)
