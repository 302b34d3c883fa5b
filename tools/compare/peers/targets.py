"""The targets for the figures."""

from typing import NamedTuple

from pandomq.bench.measurements.features import CASES
from tools.compare.peers import works
from tools.compare.peers.ledger import FAST, PLAIN, Ledger


class Target(NamedTuple):
    """One target and the measured figure; None where it could not be measured."""

    name: str
    wanted: str
    measured: float | None
    met: bool

    @classmethod
    def at_least(cls, name: str, limit: float, measured: float | None, unit: str) -> "Target":
        return cls(name, f"≥ {limit:,g} {unit}", measured, measured is not None and measured >= limit)

    @classmethod
    def at_most(cls, name: str, limit: float, measured: float | None, unit: str) -> "Target":
        return cls(name, f"≤ {limit:,g} {unit}", measured, measured is not None and measured <= limit)


def targets(ledger: Ledger, scale: works.Scale) -> list[Target]:
    return [
        *_head_to_head(ledger),
        *_latency(ledger),
        *_long_queues(ledger, scale),
        *_churn(ledger),
        *_feature_costs(ledger),
        *_flatness(ledger),
        *_connections(ledger),
    ]


def _head_to_head(ledger: Ledger) -> list[Target]:
    found = []
    for work in works.WORKS:
        for limit, broker in ((work.target, FAST), (work.plain_target, PLAIN)):
            if limit is not None:
                name = f"{work.subject}: {broker}"
                found.append(Target.at_least(name, limit, ledger.ratio(work.subject, work.unit, broker), "× RabbitMQ"))
    return found


def _latency(ledger: Ledger) -> list[Target]:
    subject = works.PERSISTENT_LATENCY_SUBJECT
    p99_us = ledger.median(subject, FAST, works.CONFIRM_P99_UNIT)
    measured = None if p99_us is None else p99_us / 1000
    return [Target.at_most(f"{subject}: confirm p99", works.CONFIRM_P99_MS_MAX, measured, "ms")]


def _long_queues(ledger: Ledger, scale: works.Scale) -> list[Target]:
    found = []
    for work in works.long_works(scale):
        memory = ledger.median(work.subject, FAST, works.MEMORY_UNIT)
        found.append(Target.at_most(f"{work.subject}: memory", work.memory_mib_max, memory, "MiB"))
        if work.restarts:
            for unit, how in ((works.RESTART_UNIT, ""), (works.CRASH_UNIT, " after a kill")):
                name = f"{work.subject}: restart{how}"
                found.append(Target.at_most(name, works.RESTART_S_MAX, ledger.median(work.subject, FAST, unit), "s"))
    return found


def _churn(ledger: Ledger) -> list[Target]:
    subject = works.CHURN_SUBJECT
    return [
        Target.at_most(f"{subject}: {unit.removeprefix('times ')} does not grow", works.CHURN_MAX, measured, "×")
        for unit in (works.CHURN_MEMORY_UNIT, works.CHURN_DISK_UNIT)
        for measured in [ledger.median(subject, FAST, unit)]
    ]


def _feature_costs(ledger: Ledger) -> list[Target]:
    """The most expensive queue argument represents all of them."""
    costs = {
        case.name: ledger.median(works.FEATURE_PREFIX + case.name, FAST, works.RATIO) for case in CASES if case.targeted
    }
    measured = {name: cost for name, cost in costs.items() if cost is not None}
    dearest = max(measured, key=lambda name: measured[name], default="")
    worst = measured.get(dearest) if len(measured) == len(costs) else None
    name = f"every queue argument (dearest: {dearest or 'none measured'})"
    return [Target.at_most(name, works.FEATURE_COST_MAX, worst, "× a plain queue")]


def _flatness(ledger: Ledger) -> list[Target]:
    subjects = [figure.subject for figure in ledger.figures if figure.subject.startswith(works.FLATNESS_PREFIX)]
    return [
        Target.at_most(
            f"cost per message, {subject.removeprefix(works.FLATNESS_PREFIX)}",
            works.FLATNESS_MAX,
            ledger.median(subject, FAST, works.RATIO),
            "×",
        )
        for subject in subjects
    ]


def _connections(ledger: Ledger) -> list[Target]:
    subject = works.CONNECTIONS_SUBJECT
    weight = ledger.median(subject, FAST, works.WEIGHT_UNIT)
    opened = ledger.median(subject, FAST, works.OPENED_UNIT)
    return [
        Target.at_most(f"memory of a {subject}", works.CONNECTION_KIB_MAX, weight, "KiB"),
        Target.at_least("connections opened", works.OPENED_RATE_MIN, opened, "a second"),
    ]
