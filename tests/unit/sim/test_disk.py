"""The simulated disk keeps what was synced, may lose everything else, and does the same again for the same seed."""

from __future__ import annotations

import errno
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from pandomq.sim.disks.disk import NEVER_MS, DiskPace, SimDisk
from pandomq.sim.disks.files import SECTOR_BYTES, Loss

A, B = FileName("a"), FileName("b")


class User:
    """Hands effects in one by one and waits for each."""

    def __init__(self, seed: int = 0, **options: int) -> None:
        self.disk = SimDisk(Random(seed), pace=DiskPace(joined_chance=0.0), **options)
        self.now_ms = 0
        self.tickets = 0

    def submit(self, *effects: Effect, lane: Lane = Lane.LOG) -> None:
        requests = [Request(Ticket(self.tickets + place), lane, effect) for place, effect in enumerate(effects, 1)]
        self.tickets += len(effects)
        self.disk.submit(requests, self.now_ms)

    def finish(self) -> list[Completion]:
        completions: list[Completion] = []
        while self.disk.next_ms != NEVER_MS:
            self.now_ms = self.disk.next_ms
            completions += self.disk.take_completions(self.now_ms)
        return completions

    def do(self, *effects: Effect) -> list[Completion]:
        self.submit(*effects)
        return self.finish()

    def read(self, file: FileName) -> bytes:
        data = self.do(Read(file, 0, 2**20))[0].result
        assert isinstance(data, bytes)
        return data


def test_effects_change_the_files_as_described() -> None:
    user = User()
    done = user.do(
        Create(A),
        Write(A, 10, (b"abc", b"def")),
        Read(A, 8, 4),
        Resize(A, 12),
        Rename(A, B),
        Read(B, 0, 99),
        ListFiles(),
    )
    assert [completion.error for completion in done] == [None] * 7
    assert (done[2].result, done[5].result) == (b"\0\0ab", b"\0" * 10 + b"ab")
    assert done[6].result == ((B, 12),)
    assert user.do(Delete(B), ListFiles())[1].result == ()


@pytest.mark.parametrize(
    "effect", [Write(A, 0, (b"x",)), Read(A, 0, 1), Delete(A), Rename(A, B), Resize(A, 0), SyncFile(A)]
)
def test_effects_on_a_missing_file_fail(effect: Effect) -> None:
    error = User().do(effect)[0].error
    assert error is not None and error.number == errno.ENOENT


@given(
    seed=st.integers(0, 2**32),
    synced=st.binary(min_size=1, max_size=2000),
    writes=st.lists(st.tuples(st.integers(0, 3000), st.binary(min_size=1, max_size=1200)), max_size=5),
)
def test_a_sector_is_as_some_write_left_it(seed: int, synced: bytes, writes: list[tuple[int, bytes]]) -> None:
    user = User(seed)
    user.do(Create(A), SyncDirectory(), Write(A, 0, (synced,)), SyncFile(A))
    states = [synced]
    for offset, data in writes:
        user.do(Write(A, offset, (data,)))
        content = bytearray(states[-1].ljust(offset + len(data), b"\0"))
        content[offset : offset + len(data)] = data
        states.append(bytes(content))
    user.disk.crash(Loss.SOME)
    found = user.read(A)
    assert len(found) in {len(state) for state in states}
    for at in range(0, len(found), SECTOR_BYTES):
        sector = found[at : at + SECTOR_BYTES]
        versions = [state[at : at + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")[: len(sector)] for state in states]
        assert sector in versions


def test_writes_are_lost_torn_and_reordered() -> None:
    seen = set()
    for seed in range(200):
        user = User(seed)
        user.do(Create(A), SyncDirectory(), Write(A, 0, (bytes(1024),)), SyncFile(A))
        user.do(Write(A, 0, (b"1" * 512,)), Write(A, 512, (b"2" * 512,)))
        user.disk.crash(Loss.SOME)
        found = user.read(A)
        seen.add((found[0:1], found[512:513]))
    assert (b"\0", b"2") in seen, "the later one survived alone"
    assert (b"1", b"\0") in seen
    assert len(seen) == 4


def test_synced_data_survive_any_crash() -> None:
    for loss in Loss:
        user = User()
        user.do(Create(A), Write(A, 0, (b"kept",)), SyncFile(A), SyncDirectory(), Create(B))
        user.disk.crash(loss)
        assert user.read(A) == b"kept"
        assert (B in user.disk.sizes()) is (loss is Loss.NONE) or loss is Loss.SOME


def test_a_file_without_a_synced_name_may_be_gone() -> None:
    user = User()
    user.do(Create(A), Write(A, 0, (b"x",)), SyncFile(A))
    user.disk.crash(Loss.ALL)
    assert not user.disk.sizes()


def test_errors_can_be_injected() -> None:
    user = User()
    user.do(Create(A))
    user.disk.fail_next(SyncFile, errno.EIO, 2)
    errors = [completion.error for completion in user.do(SyncFile(A), Write(A, 0, (b"x",)), SyncFile(A), SyncFile(A))]
    assert [error.number if error else 0 for error in errors] == [errno.EIO, 0, errno.EIO, 0]


def test_a_full_disk() -> None:
    user = User(capacity_bytes=1000)
    done = user.do(Create(A, 600), Create(B, 600), Create(B), Write(B, 0, (bytes(400),)), Write(B, 400, (b"x",)))
    assert [completion.error.number if completion.error else 0 for completion in done] == [
        0,
        errno.ENOSPC,
        0,
        0,
        errno.ENOSPC,
    ]
    # The file that was set aside is there.
    assert user.do(Write(A, 0, (bytes(600),)), MeasureSpace())[1].result == 0
    assert user.do(Delete(A), MeasureSpace())[1].result == 600


def test_a_read_only_disk() -> None:
    user = User()
    user.do(Create(A), Write(A, 0, (b"x",)))
    user.disk.read_only = True
    done = user.do(Write(A, 0, (b"y",)), Create(B), Read(A, 0, 1))
    assert [completion.error.number if completion.error else 0 for completion in done] == [errno.EROFS, errno.EROFS, 0]
    assert done[2].result == b"x"


def test_rot() -> None:
    user = User()
    user.do(Create(A), Write(A, 0, (b"\0\0",)), SyncFile(A), SyncDirectory())
    user.disk.flip_bit(A, 9)
    assert user.read(A) == b"\0\2"
    user.disk.truncate_file(A, 1)
    assert user.read(A) == b"\0"
    user.disk.lose_file(A)
    assert not user.disk.sizes()


def test_a_stall_holds_up_its_lane_only() -> None:
    disk = SimDisk(Random(1), pace=DiskPace(stall_chance=1.0, stall_us=(5_000_000, 5_000_000)))
    disk.submit([Request(Ticket(1), Lane.LOG, Create(A))], 0)
    assert 5000 <= disk.next_ms <= 5010
    assert disk.take_completions(4000) == []
    assert [completion.ticket for completion in disk.take_completions(5010)] == [1]


def test_a_lane_keeps_its_order_and_lanes_do_not_wait_for_each_other() -> None:
    user = User(seed=3)
    user.do(Create(A), Create(B))
    user.submit(*[Write(A, 0, (bytes([number]),)) for number in range(50)], lane=Lane.LOG)
    user.submit(*[Write(B, 0, (bytes([number]),)) for number in range(50)], lane=Lane.BULK)
    order = [completion.ticket for completion in user.finish()]
    assert [ticket for ticket in order if ticket <= 52] == list(range(3, 53))
    assert [ticket for ticket in order if ticket > 52] == list(range(53, 103))
    assert order != sorted(order)


def test_the_same_seed_does_the_same() -> None:
    def life(seed: int) -> tuple[list[Completion], bytes]:
        user = User(seed)
        user.submit(Create(A), SyncDirectory(), *[Write(A, n * 100, (bytes([n]) * 200,)) for n in range(20)])
        completions = user.finish()
        user.disk.crash(Loss.SOME)
        return completions, user.read(A)

    assert life(5) == life(5)
    assert len({life(seed)[1] for seed in range(5)}) > 1


def test_syncs_may_be_joined() -> None:
    disk = SimDisk(Random(1), pace=DiskPace(joined_chance=1.0))
    effects: list[Effect] = [Create(A), Write(A, 0, (b"1",)), SyncFile(A), Write(A, 1, (b"2",)), SyncFile(A)]
    disk.submit([Request(Ticket(place), Lane.LOG, effect) for place, effect in enumerate(effects)], 0)
    order = [completion.ticket for completion in disk.take_completions(10_000)]
    assert order == [0, 1, 3, 2, 4], "the first sync is complete with the second"
