"""A whole comparison of clusters: speed first, then faults, within the time allowed; ends what it started.

Its result is stored in docs/clusters.json, and is the only source of the page about clusters.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path

import msgspec

from pandomq.bench.client.wire import BrokerRefused
from pandomq.bench.load import Load
from pandomq.bench.run import Show, measure
from tools.compare.clusters import faults, works
from tools.compare.clusters.catch_up import Rejoining
from tools.compare.clusters.cluster import Cluster
from tools.compare.clusters.stage import Stage, stage
from tools.compare.peers.comparison import insist_on_compiled_kernel
from tools.compare.peers.ledger import Ledger
from tools.compare.peers.machine import Machine, this_machine
from tools.compare.peers.other_work import OtherWork
from tools.compare.peers.works import RATE, latency_figures

_MIB = 2**20
_SPEED_SHARE = 0.45
"""Share of the allowed time; the rest is for faults."""


class ClusterComparison(msgspec.Struct):
    day: str
    minutes: float
    machine: Machine
    versions: dict[str, str]
    scale: works.Scale
    speed: Ledger
    faults: Ledger
    others_share: float


class _Campaign:
    def __init__(self, scale: works.Scale, show: Show) -> None:
        self._scale = scale
        self._show = show
        self.speed = Ledger()
        self.faults = Ledger()
        self.versions: dict[str, str] = {}

    # Speed.

    def measure_speed(self, directory: Path, end_s: float) -> None:
        with stage(directory, self.speed, self._show, stalling=False) as clusters:
            # Single measurements come first: they must not depend on the duration of the rounds.
            clusters.each(works.CATCH_UP_SUBJECT, works.SHARE_UNIT, 0, self._catch_up)
            for turn in _rounds(self._scale.speed_rounds, end_s):
                self._speed_round(clusters, turn)
                self.speed.rounds += 1
            self.versions |= clusters.versions

    def _speed_round(self, clusters: Stage, turn: int) -> None:
        clusters.each(works.THROUGHPUT_SUBJECT, RATE, turn, partial(self._throughput, turn))
        clusters.each(works.LATENCY_SUBJECT, "confirm p99 µs", turn, partial(self._latency, turn))
        clusters.each(works.PROXIED_SUBJECT, works.PROXIED_SHARE_UNIT, turn, partial(self._proxied, turn))

    def _load(self, cluster: Cluster, turn: int, changes: dict[str, object]) -> Load:
        load = Load(
            url=cluster.leader(turn).address, warm_up_s=self._scale.warm_up_s, duration_s=self._scale.duration_s
        )
        return msgspec.structs.replace(load, **changes)

    def _throughput(self, turn: int, cluster: Cluster, show: Show) -> None:
        found = measure(self._load(cluster, turn, works.THROUGHPUT_CHANGES), show)
        if found.missing or found.refused:
            raise BrokerRefused(f"{found.missing} messages missing, {found.refused} refused")
        self.speed.note(works.THROUGHPUT_SUBJECT, cluster.system, RATE, found.processed_rate)

    def _latency(self, turn: int, cluster: Cluster, show: Show) -> None:
        found = measure(self._load(cluster, turn, works.LATENCY_CHANGES), show)
        for unit, value in latency_figures(found).items():
            self.speed.note(works.LATENCY_SUBJECT, cluster.system, unit, value)

    def _proxied(self, turn: int, cluster: Cluster, show: Show) -> None:
        """The same queue, its consumer once connected to the leader and once to another broker; the publisher stays."""
        at_leader = self._load(cluster, turn, works.PROXIED_CHANGES)
        other = next(member for member in cluster.members if member.address != at_leader.url)
        rates = []
        for load in (at_leader, msgspec.structs.replace(at_leader, consumer_url=other.address)):
            found = measure(load, show)
            if found.missing:
                raise BrokerRefused(f"{found.missing} messages missing")
            rates.append(found.processed_rate)
        units = (works.AT_LEADER_UNIT, works.ELSEWHERE_UNIT, works.PROXIED_SHARE_UNIT)
        for unit, value in zip(units, (*rates, rates[1] / rates[0]), strict=True):
            self.speed.note(works.PROXIED_SUBJECT, cluster.system, unit, value)

    def _catch_up(self, cluster: Cluster, show: Show) -> None:
        scale = self._scale
        found = Rejoining(cluster, scale.held_messages, scale.missed_messages, scale.flow_s, show).run()
        for unit, value in (
            (works.BEFORE_UNIT, found.before_rate),
            (works.WITHOUT_UNIT, found.without_rate),
            (works.MEANWHILE_UNIT, found.meanwhile_rate),
            (works.SHARE_UNIT, found.meanwhile_rate / found.before_rate),
            (works.CATCH_UP_UNIT, found.seconds),
            (works.MISSED_UNIT, found.missed_bytes / _MIB),
            (works.SENT_UNIT, found.sent_bytes / _MIB),
        ):
            self.speed.note(works.CATCH_UP_SUBJECT, cluster.system, unit, value)
        # The following rounds begin with empty clusters.
        cluster.renew()

    # Faults.

    def measure_faults(self, directory: Path, end_s: float) -> None:
        with stage(directory, self.faults, self._show, stalling=True) as clusters:
            for turn in _rounds(self._scale.fault_rounds, end_s):
                for fault in faults.FAULTS:
                    clusters.each(fault.subject, works.PAUSE_UNIT, turn, partial(self._fault, fault, turn))
                clusters.each(faults.RESTART_SUBJECT, works.PAUSE_UNIT, turn, partial(self._restarts, turn))
                self.faults.rounds += 1
            self.versions |= clusters.versions

    def _fault(self, fault: faults.Fault, turn: int, cluster: Cluster, show: Show) -> None:
        show("", 0, 0)
        if not all(fault.possible(member) for member in cluster.members):
            self.faults.note_error(
                fault.subject, cluster.system, works.PAUSE_UNIT, "not possible on this machine: it needs root"
            )
            return
        self._note_trial(fault.subject, cluster, faults.inflict(cluster, fault, turn))

    def _restarts(self, turn: int, cluster: Cluster, show: Show) -> None:
        show("", 0, 0)
        self._note_trial(faults.RESTART_SUBJECT, cluster, faults.restart_all(cluster, turn))

    def _note_trial(self, subject: str, cluster: Cluster, trial: faults.Trial) -> None:
        self.faults.note(subject, cluster.system, works.PAUSE_UNIT, max(trial.pauses_s))
        if not trial.over:
            self.faults.note_error(subject, cluster.system, works.PAUSE_UNIT, "no confirm arrived during the fault")


def compare_clusters(scale: works.Scale, minutes_max: float, show: Show) -> ClusterComparison:
    insist_on_compiled_kernel()
    others, begun_s = OtherWork(), time.monotonic()
    campaign = _Campaign(scale, show)
    with _directory() as directory:
        campaign.measure_speed(directory / "speed", begun_s + minutes_max * 60 * _SPEED_SHARE)
        campaign.measure_faults(directory / "faults", begun_s + minutes_max * 60)
    return ClusterComparison(
        day=date.today().isoformat(),
        minutes=round((time.monotonic() - begun_s) / 60, 1),
        machine=this_machine(),
        versions=campaign.versions,
        scale=scale,
        speed=campaign.speed,
        faults=campaign.faults,
        others_share=round(others.share(), 3),
    )


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pandomq-clusters-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def _rounds(count: int, end_s: float) -> Iterator[int]:
    """As many rounds as fit: none begins that would end too late, except the first."""
    longest_s = 0.0
    for turn in range(count):
        begun_s = time.monotonic()
        if turn and begun_s + longest_s > end_s:
            return
        yield turn
        longest_s = max(longest_s, time.monotonic() - begun_s)
