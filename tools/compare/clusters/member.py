"""One broker of a cluster: a process that is started, killed, frozen, cut off and started again.

Signals go to its process group, which contains nothing else: there may be a start script between this process and the
broker.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pandomq.bench import process
from pandomq.bench.client.url import BrokerUrl
from tools.compare.clusters import limits
from tools.compare.clusters.disks import Disk
from tools.compare.clusters.places import Place

USER = PASSWORD = "bench"
"""Brokers in namespaces are not on loopback for their clients, so guest may not log in."""


class Member:
    def __init__(self, name: str, place: Place, disk: Disk) -> None:
        self.name = name
        self.place = place
        self.disk = disk
        self._process: subprocess.Popen[bytes] | None = None
        self._frozen = False

    @property
    def disturbed(self) -> bool:
        """A fault was applied that it may not have noticed itself."""
        return self._frozen or self.place.is_cut or self.disk.stalls

    @property
    def url(self) -> BrokerUrl:
        return BrokerUrl(self.place.host, self.place.amqp_port, USER, PASSWORD, "/")

    @property
    def address(self) -> str:
        """The address for a load with a URL."""
        return f"amqp://{USER}:{PASSWORD}@{self.place.amqp}/"

    @property
    def pid(self) -> int:
        """The started process, and its group."""
        return self._process.pid if self._process is not None else 0

    @property
    def pids(self) -> list[int]:
        """All its processes."""
        return process.group_pids(self.pid) if self.alive else []

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def output(self) -> Path:
        return self.disk.logs / "output"

    def last_words(self) -> str:
        return self.output.read_text(errors="replace")[-1000:] if self.output.exists() else ""

    def launch(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        assert not self.alive, f"{self.name} runs already"
        environment = {name: value for name, value in {**os.environ, **variables}.items() if value}
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [*self.place.prefix, *command],
                env=environment,
                cwd=self.disk.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def terminate(self) -> None:
        """Asks it to end, and waits for it."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(limits.STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name} did not stop within {limits.STOP_TIMEOUT_S:.0f} s") from None

    def kill(self) -> None:
        if self._process is None:
            return
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._frozen = False

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)
        self._frozen = True

    def thaw(self) -> None:
        if self._frozen:
            self._signal(signal.SIGCONT)
            self._frozen = False

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
