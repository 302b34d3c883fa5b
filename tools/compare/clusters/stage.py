"""Runs both systems' clusters at once, in turns: one works while the other is idle."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pandomq.bench import process
from pandomq.bench.client.wire import BrokerRefused
from pandomq.bench.run import Show
from tools.compare.clusters import limits
from tools.compare.clusters.cluster import Cluster
from tools.compare.clusters.disks import disks, loop_disks_allowed
from tools.compare.clusters.member import Member
from tools.compare.clusters.pando import PandoCluster
from tools.compare.clusters.places import namespaces_allowed, places
from tools.compare.clusters.rabbit import RabbitCluster
from tools.compare.peers.ledger import Ledger

_SHOW_EVERY_S = 0.5

Step = Callable[[Cluster, Show], None]


class Stage:
    def __init__(self, clusters: Sequence[Cluster], ledger: Ledger, show: Show) -> None:
        self._clusters = list(clusters)
        self._ledger = ledger
        self._show = show
        self._spoiled: set[str] = set()

    @property
    def versions(self) -> dict[str, str]:
        return {cluster.system: cluster.version for cluster in self._clusters if cluster.version}

    def each(self, subject: str, unit: str, turn: int, step: Step) -> None:
        """Runs the step on every cluster, in alternating order each turn. Errors are noted, and the run continues."""
        for cluster in self._clusters if turn % 2 == 0 else self._clusters[::-1]:
            try:
                if cluster.system in self._spoiled:
                    self._show(f"{cluster.system}: restarting", 0, 0)
                    cluster.renew()
                    self._spoiled.discard(cluster.system)
                self._wait_until_idle()
                step(cluster, seldom(self._show, f"{cluster.system}, {subject}"))
            except (BrokerRefused, OSError, RuntimeError) as error:
                self._spoiled.add(cluster.system)
                self._ledger.note_error(subject, cluster.system, unit, str(error).split("\n", 1)[0])

    def _wait_until_idle(self) -> None:
        pids = [pid for cluster in self._clusters for member in cluster.members for pid in member.pids]
        # One of them may end in the meantime; an unexpected end is found when the broker is used.
        with suppress(OSError):
            process.wait_until_idle(*pids)


def seldom(show: Show, words: str) -> Show:
    """Reports at most twice a second: the processor is needed for other things."""
    last_s = 0.0

    def told(phase: str, done: float, rate: float) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= _SHOW_EVERY_S:
            last_s = time.monotonic()
            show(f"{words}: {phase}", done, rate)

    return told


@contextmanager
def stage(directory: Path, ledger: Ledger, show: Show, *, stalling: bool) -> Iterator[Stage]:
    """Starts a cluster of each system; ends them, and everything that was built for them. `stalling`: on disks that can
    stall."""
    with ExitStack() as stack:
        clusters: list[Cluster] = []
        for kind in (RabbitCluster, PandoCluster):
            show(f"start three of {kind.system}", 0, 0)
            where = stack.enter_context(places(limits.MEMBERS, apart=namespaces_allowed()))
            home = directory / kind.system.lower()
            stalls = stalling and loop_disks_allowed()
            kept = stack.enter_context(disks(home, limits.MEMBERS, stalling=stalls))
            members = [
                Member(f"n{number}", place, disk)
                for number, (place, disk) in enumerate(zip(where, kept, strict=True), 1)
            ]
            cluster = kind(members)
            stack.callback(cluster.close)
            cluster.start()
            clusters.append(cluster)
        yield Stage(clusters, ledger, show)
