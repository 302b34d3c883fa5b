"""The rounds of a comparison: in each, everything is measured once, on one broker after the other.

The order of the brokers is reversed with every round, so that none always comes first. A load that a broker refuses, or
that crashes it, is noted as such; the round continues.
"""

from collections.abc import Callable, Mapping

import msgspec

from pandomq.bench import process
from pandomq.bench.broker_process import BrokerProcess
from pandomq.bench.client.wire import BrokerRefused
from pandomq.bench.load import Load
from pandomq.bench.measurements.connections import measure_connections
from pandomq.bench.measurements.features import CASES, measure_features
from pandomq.bench.measurements.flatness import bindings_load, measure_flatness, queues_load
from pandomq.bench.run import Show, measure
from tools.compare.peers import works
from tools.compare.peers.ledger import FAST, RABBITMQ, Ledger


class Rounds:
    def __init__(self, brokers: Mapping[str, BrokerProcess], scale: works.Scale, ledger: Ledger, show: Show) -> None:
        self._brokers = brokers
        self._scale = scale
        self._show = show
        self.ledger = ledger

    def run_one(self) -> None:
        self._connections()
        for work in works.WORKS:
            for name in self._order(work.brokers):
                self._work(work, name)
        for subject, changes in works.LATENCIES:
            for name in self._order((RABBITMQ, FAST)):
                self._latency(subject, changes, name)
        self._features()
        self._flatness()
        self.ledger.rounds += 1

    def _order(self, names: tuple[str, ...]) -> list[str]:
        present = [name for name in names if name in self._brokers]
        return present if self.ledger.rounds % 2 == 0 else present[::-1]

    def _load(self, name: str, changes: Mapping[str, object]) -> Load:
        base = Load(url=self._brokers[name].url, warm_up_s=self._scale.warm_up_s, duration_s=self._scale.duration_s)
        return msgspec.structs.replace(base, **changes)

    def _guarded(self, subject: str, name: str, unit: str, step: Callable[[], None]) -> None:
        """Measures on an otherwise idle machine, and on a running broker."""
        if not self._brokers[name].alive:
            self._brokers[name].fresh()
        for broker in self._brokers.values():
            if broker.alive:
                process.wait_until_idle(broker.pid)
        self._brokers[name].untouched = False
        try:
            step()
        except (BrokerRefused, OSError) as error:
            alive = self._brokers[name].alive
            self.ledger.note_error(subject, name, unit, str(error) if alive else f"the broker ended: {error}")

    def _show_for(self, name: str, subject: str) -> Show:
        def show(phase: str, done: float, rate: float) -> None:
            self._show(f"round {self.ledger.rounds + 1}, {name}, {subject}: {phase}", done, rate)

        return show

    def _work(self, work: works.Work, name: str) -> None:
        def step() -> None:
            found = measure(self._load(name, work.changes), self._show_for(name, work.subject))
            if found.missing or found.refused:
                raise BrokerRefused(f"{found.missing} messages missing, {found.refused} refused")
            self.ledger.note(work.subject, name, work.unit, found.processed_rate)

        self._guarded(work.subject, name, work.unit, step)

    def _latency(self, subject: str, changes: Mapping[str, object], name: str) -> None:
        def step() -> None:
            found = measure(self._load(name, changes), self._show_for(name, subject))
            for unit, value in works.latency_figures(found).items():
                self.ledger.note(subject, name, unit, value)

        self._guarded(subject, name, "confirm p50 µs", step)

    def _connections(self) -> None:
        for name, count in ((RABBITMQ, self._scale.rabbit_connections), (FAST, self._scale.connections)):
            if name in self._brokers:
                self._connections_of(name, count)

    def _connections_of(self, name: str, count: int) -> None:
        # Only a new broker shows the memory of a connection: it would use freed memory again.
        self._brokers[name].fresh()

        def step() -> None:
            load = self._load(name, {}) if name == FAST else None
            show = self._show_for(name, works.CONNECTIONS_SUBJECT)
            found = measure_connections(self._brokers[name].url, count, load, show)
            self.ledger.note(works.CONNECTIONS_SUBJECT, name, works.OPENED_UNIT, found.opened_rate)
            if found.kib_each is not None:
                self.ledger.note(works.CONNECTIONS_SUBJECT, name, works.WEIGHT_UNIT, found.kib_each)
            if found.idle_cost_ratio is not None:
                subject = f"{works.FLATNESS_PREFIX}1 to {count:,} {works.IDLE_SUBJECT}"
                self.ledger.note(subject, name, works.RATIO, found.idle_cost_ratio)

        self._guarded(works.CONNECTIONS_SUBJECT, name, works.OPENED_UNIT, step)

    def _features(self) -> None:
        scale = self._scale

        def step() -> None:
            changes = {"warm_up_s": scale.feature_warm_up_s, "duration_s": scale.feature_duration_s}
            result = measure_features(self._load(FAST, changes), 1, self._show_for(FAST, "features"))
            for cost in result.costs:
                subject = works.FEATURE_PREFIX + cost.name
                if cost.error or not cost.cost_ratio:
                    self.ledger.note_error(subject, FAST, works.RATIO, cost.error or "not measured")
                else:
                    self.ledger.note(subject, FAST, works.RATIO, cost.cost_ratio)
                    self.ledger.note(subject, FAST, works.RATE, cost.rate)
                    self.ledger.note(subject, FAST, works.CPU, cost.broker_cpu_us or 0.0)

        self._guarded(works.FEATURE_PREFIX + CASES[0].name, FAST, works.RATIO, step)

    def _flatness(self) -> None:
        scale = self._scale
        base = self._load(FAST, {"warm_up_s": scale.warm_up_s / 2, "duration_s": scale.duration_s / 2})
        self._flatness_of("queues", [(count, queues_load(base, count)) for count in scale.queues])
        for kind in ("direct", "topic"):
            loads = [(count, bindings_load(base, kind, count)) for count in scale.bindings]
            self._flatness_of(f"{kind} bindings", loads)

    def _flatness_of(self, what: str, loads: list[tuple[int, Load]]) -> None:
        subject = f"{works.FLATNESS_PREFIX}{loads[0][0]:,} to {loads[-1][0]:,} {what}"

        def step() -> None:
            # A restarted broker has another port.
            here = [(count, msgspec.structs.replace(load, url=self._brokers[FAST].url)) for count, load in loads]
            result = measure_flatness(what, here, 1, self._show_for(FAST, what))
            self.ledger.note(subject, FAST, works.RATIO, result.cost_ratio_max)

        self._guarded(subject, FAST, works.RATIO, step)
