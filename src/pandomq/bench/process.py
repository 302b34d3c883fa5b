"""Reads a broker's process in /proc: memory and processor time. Also sets this process's limit of open files."""

import os
import resource
import time
from contextlib import suppress
from pathlib import Path

from pandomq.bench import limits

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_LISTEN_STATE = "0A"
_IDLE_SAMPLE_S = 0.25
_IDLE_SHARE = 0.1


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def peak_resident_bytes(pid: int) -> int:
    """The maximum so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) * 1024
    raise OSError(f"cannot read the memory usage of process {pid}")


def cpu_seconds(pid: int) -> float:
    """User and system time of the whole process so far."""
    # The command name may contain spaces, so fields are counted from its closing parenthesis.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def wait_until_idle(*pids: int, timeout_s: float = limits.DRAIN_TIMEOUT_S) -> bool:
    """Waits until each hardly uses the processor: after a load a process may still clean up, or collect garbage."""
    end = time.monotonic() + timeout_s
    used_s = [cpu_seconds(pid) for pid in pids]
    while time.monotonic() < end:
        time.sleep(_IDLE_SAMPLE_S)
        before_s, used_s = used_s, [cpu_seconds(pid) for pid in pids]
        if all(used - before <= _IDLE_SHARE * _IDLE_SAMPLE_S for before, used in zip(before_s, used_s, strict=True)):
            return True
    return False


def group_pids(group: int) -> list[int]:
    """The processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The command name may contain spaces, so fields are counted from its closing parenthesis.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                    found.append(int(entry.name))
    return found


def listening_pid(port: int) -> int | None:
    """The process on this machine that listens on the TCP port, if it is visible to this user."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for entry in Path("/proc").iterdir():
        if sockets and entry.name.isdigit() and sockets & _open_files(entry):
            return int(entry.name)
    return None


def _listening_inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not Path(table).exists():
            continue
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN_STATE and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found


def _open_files(process: Path) -> set[str]:
    try:
        return {os.readlink(file) for file in (process / "fd").iterdir()}
    except OSError:
        # It ended in the meantime, or belongs to another user.
        return set()


def allow_open_files(wanted: int) -> None:
    """Raises this process's limit of open files; fails with a clear message rather than in the middle of a run."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + limits.FILES_SPARE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed))
        except (ValueError, OSError) as error:
            raise OSError(f"{needed} open files are needed, but the limit is {hard}: raise it (ulimit -n)") from error
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
