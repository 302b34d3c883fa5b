"""Thousands of clients that lose their broker at the same moment, and all reconnect at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from .cluster import Cluster
from .process import SOURCES

TESTS = Path(__file__).parents[3]
PROCESSES = 2
LOOK_S = 0.05


class Storm:
    """Its clients run in processes of their own."""

    def __init__(self, cluster: Cluster, count: int) -> None:
        self._addresses = [broker.address for broker in cluster]
        self._counts = [count // PROCESSES + (number < count % PROCESSES) for number in range(PROCESSES)]
        self.count = count
        self._seen: list[dict[str, float]] = [{"connected": 0, "refusals": 0, "losses": 0}] * PROCESSES
        self._processes: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []
        self.longest_outside_s = 0.0
        """The longest time that any client had to wait for a connection, since `forget`."""

    @property
    def connected(self) -> int:
        return int(sum(seen["connected"] for seen in self._seen))

    @property
    def refusals(self) -> int:
        return int(sum(seen["refusals"] for seen in self._seen))

    @property
    def losses(self) -> int:
        """The number of lost connections."""
        return int(sum(seen["losses"] for seen in self._seen))

    def forget(self) -> None:
        self.longest_outside_s = 0.0

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(SOURCES)))}
        for place, count in enumerate(self._counts):
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.cluster.storm_clients", str(count), *self._addresses],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            reader = threading.Thread(target=self._read, args=(place, process), name=f"storm {place}")
            self._processes.append(process)
            self._readers.append(reader)
            reader.start()

    def stop(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            process.wait()
        for reader in self._readers:
            reader.join()

    def _read(self, place: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                seen = json.loads(line)
                self._seen[place] = seen
                self.longest_outside_s = max(self.longest_outside_s, seen["outside_s"])

    def wait_for_all(self, patience_s: float, losses: int = 0) -> tuple[float, float]:
        """Waits until all are connected, after so many losses in total; returns how long that took, and the longest
        time in which no client connected."""
        begin = last = time.monotonic()
        most, longest_stall_s = self.connected, 0.0
        while self.connected < self.count or self.losses < losses:
            now = time.monotonic()
            if self.connected > most:
                longest_stall_s, last = max(longest_stall_s, now - last), now
            most = self.connected
            assert now - begin < patience_s, f"{self.connected} of {self.count} clients are connected"
            time.sleep(LOOK_S)
        return time.monotonic() - begin, longest_stall_s
