"""Brokers whose store or disk has an error: each prints in one line the error, the place, and the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pika
import pytest
from pika.exceptions import AMQPError

from pandomq.journal.hard_state import COPY_OFFSETS, HEAD
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.segments.layout import encode_sector

from .restarts import PERSISTENT, RestartingBroker, ended

BODY = b"find me here"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a broker that was killed with three messages in a queue; it has a snapshot of its start, too."""
    with ended(RestartingBroker(tmp_path_factory.mktemp("written"))) as broker:
        broker.start()
        broker.stop()
        broker.start()
        publish(broker, 3)
    return broker.data


@pytest.fixture
def stopped(written: Path, tmp_path: Path) -> Iterator[RestartingBroker]:
    with ended(RestartingBroker(tmp_path)) as broker:
        shutil.copytree(written, broker.data)
        yield broker


def publish(broker: RestartingBroker, count: int) -> None:
    channel = broker.channel()
    channel.queue_declare("q", durable=True)
    for number in range(count):
        channel.basic_publish("", "q", BODY + b" %d" % number, PERSISTENT)


def publish_until_the_end(broker: RestartingBroker) -> int:
    """Returns how many were confirmed before the broker ended."""
    channel = broker.channel()
    channel.queue_declare("q", durable=True)
    for confirmed in range(1000):
        try:
            channel.basic_publish("", "q", bytes(10_000), PERSISTENT)
        except AMQPError:
            return confirmed
    raise AssertionError("it took everything")


def count_left(broker: RestartingBroker) -> int:
    count: int = broker.channel().queue_declare("q", durable=True).method.message_count
    return count


def newest_segment(broker: RestartingBroker) -> Path:
    return max(path for path in broker.data.glob("segment-*.log") if BODY in path.read_bytes())


def store(*arguments: object) -> str:
    command = [sys.executable, "-m", "pandomq.cli.main", "store", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# The owner of the store.


def test_a_directory_has_one_broker(stopped: RestartingBroker) -> None:
    stopped.start()
    stopped._command += ["--listen", "127.0.0.1:0"]
    said = stopped.refusal()
    assert f"is in use by process {stopped.pid}" in said
    assert (stopped.data / "pid").read_text() == f"{stopped.pid}\n", "the file of the one that runs"
    assert "Stop that process first, or choose another data directory" in said


def test_a_store_stays_with_its_broker(stopped: RestartingBroker) -> None:
    stopped._command += ["--name", "other"]
    assert "the store belongs to broker 't', but this broker is 'other'" in stopped.refusal()


def test_files_of_another_cluster_are_refused(stopped: RestartingBroker, tmp_path: Path) -> None:
    (tmp_path / "stranger").mkdir()
    with ended(RestartingBroker(tmp_path / "stranger")) as stranger:
        stranger.start()
        publish(stranger, 1)
        stranger.kill()
        strange = newest_segment(stranger)
    placed = stopped.data / "segment-000000000999.log"
    shutil.copy(strange, placed)
    said = stopped.refusal()
    assert f"{placed.name} belongs to cluster " in said
    assert "Give the broker a data directory of its own cluster" in said
    placed.unlink()
    stopped.start()
    assert count_left(stopped) == 3


# The format of the store.


def age(path: Path) -> None:
    """Changes the file as if a newer broker had written it."""
    content = bytearray(path.read_bytes())
    if path.name == "state":
        for offset in COPY_OFFSETS:
            magic, _, length, counter, _ = HEAD.unpack_from(content, offset)
            inside = bytes(content[offset + HEAD.size : offset + HEAD.size + length])
            checksum = crc32(inside, crc32(HEAD.pack(magic, 9, length, counter, 0)))
            content[offset : offset + HEAD.size] = HEAD.pack(magic, 9, length, counter, checksum)
    else:
        content[8] = 9
        content[:SECTOR_BYTES] = encode_sector(bytes(content[: SECTOR_BYTES - 4]))
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["segment-*.log", "state", "snapshot-*.snap"])
def test_a_newer_format_is_refused(stopped: RestartingBroker, kind: str) -> None:
    path = max(stopped.data.glob(kind))
    before = path.read_bytes()
    age(path)
    said = stopped.refusal()
    assert f"{path.name} has format version 9; this broker supports versions up to " in said
    assert "Start the newer version of the broker that wrote it" in said
    # The file was not changed: the newer broker finds it as it left it.
    path.write_bytes(before)
    stopped.start()
    assert count_left(stopped) == 3


# Damage of the store.


def test_corruption_is_named_and_repair_keeps_the_entries_that_it_cuts(stopped: RestartingBroker) -> None:
    segment = newest_segment(stopped)
    content = bytearray(segment.read_bytes())
    place = content.index(BODY + b" 1")
    content[place] ^= 1
    segment.write_bytes(content)
    said = stopped.refusal()
    assert f"{segment.name} is corrupt at offset" in said
    offset = int(said.partition("at offset ")[2].partition(":")[0])
    assert place - 4096 < offset < place
    assert "`pandomq store repair` cuts the log there and keeps the cut part in a side file" in said
    words = store("repair", stopped.data)
    (aside,) = stopped.data.glob("aside-*")
    assert f"kept in {aside}" in words
    # Every byte that was cut off is there, also the damaged ones.
    assert bytes(content[place : place + len(BODY) + 2]) in aside.read_bytes()
    assert BODY + b" 2" in aside.read_bytes()
    stopped.start()
    assert count_left(stopped) == 1


def test_a_file_that_was_cut_short(stopped: RestartingBroker) -> None:
    segment = newest_segment(stopped)
    content = segment.read_bytes()
    segment.write_bytes(content[: content.index(BODY + b" 0")])
    said = stopped.refusal()
    assert f"{segment.name} is corrupt at offset" in said and "pandomq store repair" in said
    assert "cut off: entries" in store("repair", stopped.data)
    stopped.start()
    assert count_left(stopped) == 0


def test_a_file_that_is_gone(stopped: RestartingBroker) -> None:
    segment = newest_segment(stopped)
    content = segment.read_bytes()
    segment.unlink()
    said = stopped.refusal()
    assert "is missing" in said and "Restore the file from a backup" in said
    segment.write_bytes(content)
    stopped.start()
    assert count_left(stopped) == 3


def test_rot_in_the_newest_snapshot_costs_nothing(tmp_path: Path) -> None:
    with ended(RestartingBroker(tmp_path)) as broker:
        for count in (1, 2, 3):
            broker.start()
            publish(broker, 1)
            assert count_left(broker) == count
            broker.drop_connections()
            assert broker.stop() == 0
        snapshot = max(broker.data.glob("snapshot-*.snap"))
        content = bytearray(snapshot.read_bytes())
        content[len(content) // 2] ^= 1
        snapshot.write_bytes(content)
        broker.start()
        assert f"{snapshot.name} was damaged at offset" in broker.log_text()
        assert count_left(broker) == 3


# Errors of the disk.

PYTHON_FAULTS = """
import errno, os

def failing(name, whole):
    def call(*arguments):
        if os.path.exists({flag!r}) and name in open({flag!r}).read():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return whole(*arguments)
    return call

for name in ("fdatasync", "pwritev"):
    setattr(os, name, failing(name, getattr(os, name)))
"""
SYSTEM_FAULTS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

struct iovec;

static int fails(const char *name)
{
    char text[32] = "";
    int flag = open(FLAG, O_RDONLY | O_CLOEXEC);
    if (flag < 0)
        return 0;
    if (read(flag, text, sizeof(text) - 1) < 0)
        text[0] = 0;
    close(flag);
    return strstr(text, name) != NULL;
}

#define FAILING(type, name, word, parameters, arguments) \\
    type name parameters \\
    { \\
        if (fails(word)) { \\
            errno = EIO; \\
            return -1; \\
        } \\
        return ((type (*) parameters) dlsym(RTLD_NEXT, #name)) arguments; \\
    }

#define WRITE (int fd, const struct iovec *pieces, int count, off_t offset), (fd, pieces, count, offset)
#define WRITE_2 (int fd, const struct iovec *pieces, int count, off_t offset, int flags), \\
    (fd, pieces, count, offset, flags)
#define EXPANDED(...) FAILING(__VA_ARGS__)

FAILING(int, fdatasync, "fdatasync", (int fd), (fd))
EXPANDED(ssize_t, pwritev, "pwritev", WRITE)
EXPANDED(ssize_t, pwritev64, "pwritev", WRITE)
EXPANDED(ssize_t, pwritev2, "pwritev", WRITE_2)
EXPANDED(ssize_t, pwritev64v2, "pwritev", WRITE_2)
"""


def replace_in_python(directory: Path, flag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python runs `sitecustomize` at its start: there the functions are replaced by ones that fail on request. The
    compiled writer of the log does not call them."""
    (directory / "site").mkdir()
    (directory / "site" / "sitecustomize.py").write_text(PYTHON_FAULTS.format(flag=str(flag)))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(directory / "site"), *filter(None, sys.path)]))
    monkeypatch.setenv("PANDOMQ_PLAIN", "1")


def replace_in_system(directory: Path, flag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is loaded first replaces the system calls, for whatever the broker has compiled too."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, library = directory / "faults.c", directory / "faults.so"
    source.write_text(SYSTEM_FAULTS)
    options = ["-shared", "-fPIC", f'-DFLAG="{flag}"', "-o", str(library), str(source), "-ldl"]
    subprocess.run([compiler, *options], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))


@pytest.mark.parametrize("replace", [replace_in_python, replace_in_system])
@pytest.mark.parametrize(("call", "doing"), [("fdatasync", "cannot sync"), ("pwritev", "cannot write to")])
def test_a_disk_that_fails_ends_the_broker_unconfirmed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    replace: Callable[[Path, Path, pytest.MonkeyPatch], None],
    call: str,
    doing: str,
) -> None:
    flag = tmp_path / "fails"
    replace(tmp_path, flag, monkeypatch)
    with ended(RestartingBroker(tmp_path)) as broker:
        broker.start()
        publish(broker, 20)
        channel = broker.channel()
        flag.write_text(call)
        with pytest.raises(AMQPError):
            channel.basic_publish("", "q", BODY, PERSISTENT)
        said = broker.wait_for_end()
        assert doing in said and "Input/output error. Check the disk before you start the broker again" in said
        flag.unlink()
        broker.start()
        # Unconfirmed messages may be there or not.
        assert count_left(broker) in (20, 21)


# Small disks.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    (tmp_path / "data").mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path / "data")]
    if subprocess.run(command, check=False).returncode != 0:
        pytest.skip("this system does not let us mount")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path / "data")], check=True)


def test_a_read_only_directory(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_LOG_RESERVE_BYTES", "0")
    monkeypatch.setenv("PANDOMQ_LOG_SEGMENT_BYTES", "256KiB")
    monkeypatch.setenv("PANDOMQ_LOG_FREE_BYTES_MIN", "0")
    with ended(RestartingBroker(small_disk)) as broker:
        broker.start()
        broker.stop()
        subprocess.run(["mount", "-o", "remount,ro", str(broker.data)], check=True)
        said = broker.refusal()
        assert "Read-only file system" in said and str(broker.data) in said


def test_a_full_disk(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishers are blocked first; then the reserve is used; then the broker ends, and has all confirmed messages."""
    monkeypatch.setenv("PANDOMQ_LOG_RESERVE_BYTES", "256KiB")
    monkeypatch.setenv("PANDOMQ_LOG_SEGMENT_BYTES", "256KiB")
    monkeypatch.setenv("PANDOMQ_LOG_SNAPSHOT_BYTES", "1GiB")
    monkeypatch.setenv("PANDOMQ_LOG_FREE_BYTES_MIN", "0")
    with ended(RestartingBroker(small_disk)) as broker:
        broker.start()
        confirmed = publish_until_the_end(broker)
        said = broker.wait_for_end()
        assert (
            "No space left on device. Free some space on the disk and start the broker again; confirmed messages are "
            "not lost"
        ) in said
        assert confirmed > 100
        subprocess.run(["mount", "-o", "remount,size=16m", str(broker.data)], check=True)
        broker.start()
        assert count_left(broker) in (confirmed, confirmed + 1)


def test_consumers_go_on_while_the_disk_is_full(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_LOG_RESERVE_BYTES", "256KiB")
    monkeypatch.setenv("PANDOMQ_LOG_SEGMENT_BYTES", "256KiB")
    monkeypatch.setenv("PANDOMQ_LOG_SNAPSHOT_BYTES", "1GiB")
    monkeypatch.setenv("PANDOMQ_LOG_FREE_BYTES_MIN", "512KiB")
    with ended(RestartingBroker(small_disk)) as broker:
        broker.start()
        publish(broker, 200)
        # Another process fills the disk to the last byte.
        free = os.statvfs(broker.data)
        (broker.data / "filler").write_bytes(bytes(free.f_bavail * free.f_frsize))
        connection = broker.connect()
        channel = connection.channel()
        blocked: list[str] = []
        connection.add_on_connection_blocked_callback(lambda _, frame: blocked.append(frame.method.reason))
        while not blocked:
            channel.basic_publish("", "", b"", pika.BasicProperties())
            connection.process_data_events(0.1)
        assert blocked == ["low on disk"]
        consumer = broker.channel()
        for _ in range(200):
            method, _, _ = consumer.basic_get("q")
            assert method is not None
            consumer.basic_ack(method.delivery_tag)
        assert count_left(broker) == 0
        (broker.data / "filler").unlink()
        broker.drop_connections()
        assert broker.stop() == 0
        broker.start()
        assert count_left(broker) == 0
