"""The brokers as processes: started, watched, and stopped in order. One that ends is not restarted."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from pandomq.cli.cluster.plan import ClusterPlan, PlannedBroker
from pandomq.cli.failures import RequestRejected

STOP_S_MAX: Final = 15.0
"""How long a broker may take to end before it is killed."""
LAST_WORDS_BYTES: Final = 4096
"""The end of a log, in which the last line is searched."""


class Process:
    def __init__(self, plan: ClusterPlan, place: PlannedBroker) -> None:
        """Raises Refused if it cannot be started at all."""
        self.place = place
        try:
            place.data.mkdir(parents=True, exist_ok=True)
            with place.log.open("ab") as log:
                # A session of its own: ^C reaches only this process, which stops the brokers in order.
                self._process = subprocess.Popen(
                    plan.command(place),
                    env=plan.environment(place, os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            raise RequestRejected(f"cannot start {place.name} in {place.data}: {error.strerror}") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def end(self) -> str:
        """How it ended; empty while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        if code == 0:
            return "stopped"
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exited with status {code}: {self._last_line()}"

    def stop(self) -> None:
        """Asks it to end, waits, and kills it after a timeout."""
        if not self.runs:
            return
        self._process.terminate()
        # A process that was stopped by SIGSTOP receives nothing before it continues.
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_line(self) -> str:
        try:
            with self.place.log.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - LAST_WORDS_BYTES))
                lines = log.read().decode(errors="replace").split("\n")
        except OSError:
            return f"see {self.place.log}"
        return next((line for line in reversed(lines) if line.strip()), f"see {self.place.log}")


def stop_all(processes: Sequence[Process], root: str | None, tell: Callable[[str], None]) -> None:
    """The order avoids waiting: secondaries first, then backups, the root last."""
    order = sorted(processes, key=lambda process: (process.place.name == root, process.place.primary))
    for process in order:
        if process.runs:
            tell(f"stopping {process.place.name}")
            process.stop()
