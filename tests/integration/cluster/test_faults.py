"""The faults themselves: a cut is silent, in the intended direction; a stalled disk stalls; a full disk is full."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import disks, network
from .conftest import skip_unless_possible
from .disks import SmallDisk, StallingDisk
from .network import CLIENTS, Network

SILENCE_S = 0.3
DIAL = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7), timeout=float(sys.argv[2]))
except ConnectionRefusedError:
    print("reached")
except TimeoutError:
    print("silence")
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Network]:
    skip_unless_possible(network.missing())
    lab = Network(["a", "b", "c"])
    try:
        lab.open()
        yield lab
    finally:
        lab.close()


def dialed(lab: Network, source: str, target: str) -> str:
    """No process listens: a target that is reached refuses the connection."""
    words = [] if source == CLIENTS else lab.prefix(source)
    command = [*words, sys.executable, "-I", "-S", "-c", DIAL, lab.hosts[target], str(SILENCE_S)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_cut_is_silent_and_heals(lab: Network) -> None:
    lab.cut_off("a", "b")
    assert dialed(lab, "a", "b") == dialed(lab, "b", "a") == "silence"
    assert dialed(lab, "a", "c") == dialed(lab, CLIENTS, "a") == "reached"
    lab.cut_off("c", CLIENTS)
    assert dialed(lab, CLIENTS, "c") == "silence"
    lab.heal()
    assert dialed(lab, "a", "b") == dialed(lab, CLIENTS, "c") == "reached"


def test_a_cut_has_one_direction(lab: Network) -> None:
    lab.cut("a", "b")
    rules = {name: network.command(*lab.prefix(name), "nft", "list", "ruleset") for name in ("a", "b")}
    assert f"ip saddr {lab.hosts['a']} drop" in rules["b"]
    assert lab.hosts["b"] not in rules["a"] and lab.hosts["c"] not in rules["b"]
    lab.heal()


def test_slow_links_are_left_as_they_were(lab: Network) -> None:
    assert lab.slow("a", delay_ms=20, rate="8mbit") in ("netem", "tbf")
    assert dialed(lab, "a", "b") == "reached"
    lab.heal()
    assert "8Mbit" not in network.command(*lab.prefix("a"), "tc", "qdisc", "show", "dev", "eth0")


def test_nothing_of_a_network_remains() -> None:
    skip_unless_possible(network.missing())
    lab = Network(["a", "b"])
    lab.open()
    try:
        assert lab.prefix("a")[-1] in network.command("ip", "netns", "list")
    finally:
        lab.close()
    assert lab.prefix("a")[-1] not in network.command("ip", "netns", "list")
    assert lab.hosts[CLIENTS] not in network.command("ip", "-4", "-o", "address")


def test_a_stalled_disk(tmp_path: Path) -> None:
    skip_unless_possible(disks.missing())
    disk = StallingDisk(tmp_path / "disk")
    wrote = threading.Event()

    def write() -> None:
        with (tmp_path / "disk" / "file").open("wb") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
        wrote.set()

    try:
        disk.mount()
        disk.freeze()
        writer = threading.Thread(target=write)
        writer.start()
        assert not wrote.wait(SILENCE_S)
        disk.thaw()
        assert wrote.wait(10)
        writer.join()
    finally:
        disk.unmount()


def test_a_full_disk(tmp_path: Path) -> None:
    skip_unless_possible(disks.missing())
    disk = SmallDisk(tmp_path / "disk", 1024 * 1024)
    try:
        disk.mount()
        disk.fill()
        with pytest.raises(OSError, match="No space"):
            (tmp_path / "disk" / "file").write_bytes(bytes(8192))
        disk.empty()
        (tmp_path / "disk" / "file").write_bytes(bytes(8192))
    finally:
        disk.unmount()
