"""The cost of each queue argument, compared with a plain queue under an otherwise equal load.

Every case names the case it is compared with. All cases of a round run one after another, and a ratio is computed
within its round, so that a machine that gets slower does not change the result; the median round is reported.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import msgspec

from pandomq.bench.client import wire
from pandomq.bench.client.batch import HEADER_KEY
from pandomq.bench.load import Load, Measurement
from pandomq.bench.run import Show, measure, show_nothing


class Case(NamedTuple):
    name: str
    baseline: str
    """The case it is compared with; a baseline names itself."""
    changes: dict[str, Any]
    targeted: bool = True
    """Whether the limit on the cost applies: not if the broker is asked for more work, such as dead-lettering, and not
    for acks, which are no argument of a queue but additional frames of the client."""
    counts_confirms: bool = False
    """If messages are dropped intentionally, confirms are counted instead of deliveries."""


_NEVER = 1_000_000_000
_ACKS = {"auto_ack": False, "ack_every": 100}
_PREFETCH = {**_ACKS, "prefetch": 1000}
_QUORUM = {**_PREFETCH, "durable": True}
_CONFIRMS = {"confirm_window": 10_000}
_FULL = {"consumers": 0, **_CONFIRMS}


def _arguments(**named: Any) -> dict[str, Any]:
    return {"queue_arguments": {f"x-{name.replace('_', '-')}": value for name, value in named.items()}}


CASES: Sequence[Case] = (
    Case("plain", "plain", {}),
    Case("x-message-ttl", "plain", _arguments(message_ttl=600_000)),
    Case("expiration of each message", "plain", {"expiration_ms": 600_000}),
    Case("x-expires", "plain", _arguments(expires=600_000)),
    Case("x-max-length, drop-head", "plain", _arguments(max_length=_NEVER)),
    Case("x-max-length, reject-publish", "plain", _arguments(max_length=_NEVER, overflow="reject-publish")),
    Case("x-max-length-bytes", "plain", _arguments(max_length_bytes=_NEVER)),
    Case("x-dead-letter-exchange", "plain", _arguments(dead_letter_exchange="amq.fanout")),
    Case("x-max-priority, one priority", "plain", _arguments(max_priority=10)),
    Case("x-max-priority, mixed", "plain", {**_arguments(max_priority=10), "priorities": 10}),
    Case("x-single-active-consumer", "plain", _arguments(single_active_consumer=True)),
    Case("x-queue-mode=lazy", "plain", _arguments(queue_mode="lazy")),
    Case("consumer x-priority", "plain", {"consumer_arguments": {"x-priority": 5}}),
    Case("confirms", "plain", _CONFIRMS),
    Case("acks", "plain", _ACKS, targeted=False),
    Case("prefetch", "acks", _PREFETCH),
    Case(
        "all of them at once",
        "prefetch",
        {
            **_PREFETCH,
            **_arguments(
                message_ttl=600_000,
                expires=600_000,
                max_length=_NEVER,
                max_length_bytes=_NEVER,
                dead_letter_exchange="amq.fanout",
                max_priority=10,
                single_active_consumer=True,
            ),
            "priorities": 10,
            "expiration_ms": 600_000,
        },
        targeted=False,
    ),
    Case("one header, confirms", "confirms", {"header_keys": 4096, **_CONFIRMS}, targeted=False),
    Case(
        "x-last-value-key, confirms",
        "one header, confirms",
        {"header_keys": 4096, "backlog_max": 0, **_CONFIRMS, **_arguments(last_value_key=HEADER_KEY)},
        counts_confirms=True,
    ),
    Case("quorum", "prefetch", {**_QUORUM, **_arguments(queue_type="quorum")}, targeted=False),
    Case("quorum, x-delivery-limit", "quorum", {**_QUORUM, **_arguments(queue_type="quorum", delivery_limit=5)}),
    Case("full, drop-head", "confirms", {**_FULL, **_arguments(max_length=1000)}, targeted=False),
    Case(
        "full, reject-publish, nacked",
        "confirms",
        {**_FULL, **_arguments(max_length=1000, overflow="reject-publish")},
        targeted=False,
    ),
    Case(
        "full, drop-head, dead-lettered",
        "confirms",
        {**_FULL, **_arguments(max_length=1000, dead_letter_exchange="amq.fanout")},
        targeted=False,
    ),
    Case("x-message-ttl, all expire", "confirms", {**_FULL, **_arguments(message_ttl=50)}, targeted=False),
)


class FeatureCost(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    baseline: str
    targeted: bool
    rate: float
    cost_ratio: float
    """The cost of a message relative to the baseline: the median of the rounds."""
    broker_cpu_us: float | None
    error: str = ""
    measurements: list[Measurement]


class FeaturesResult(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    rounds: int
    costs: list[FeatureCost]


def measure_features(
    base: Load,
    rounds: int,
    show: Show = show_nothing,
    pid: int | None = None,
    put: Callable[[Load, Show, int | None], Measurement] = measure,
) -> FeaturesResult:
    """Runs all cases; a case that the broker refuses is reported with its error and without a figure."""
    found: dict[str, list[Measurement]] = {case.name: [] for case in CASES}
    errors: dict[str, str] = {}
    for number in range(rounds):
        for case in CASES:
            if case.name in errors:
                continue

            def show_case(phase: str, done: float, rate: float, name: str = case.name, number: int = number) -> None:
                show(f"round {number + 1}, {name}: {phase}", done, rate)

            try:
                found[case.name].append(put(msgspec.structs.replace(base, **case.changes), show_case, pid))
            except (wire.BrokerRefused, OSError) as error:
                errors[case.name] = str(error)
    costs = [_cost(case, found, errors) for case in CASES]
    return FeaturesResult(server=found["plain"][0].server if found["plain"] else "", rounds=rounds, costs=costs)


def _cost(case: Case, found: dict[str, list[Measurement]], errors: dict[str, str]) -> FeatureCost:
    rates = [item.confirmed_rate if case.counts_confirms else item.processed_rate for item in found[case.name]]
    baseline_rates = [item.processed_rate for item in found[case.baseline]]
    ratios = [baseline / max(rate, 1.0) for baseline, rate in zip(baseline_rates, rates, strict=False)]
    complete = case.name not in errors and ratios
    return FeatureCost(
        name=case.name,
        baseline=case.baseline,
        targeted=case.targeted and case.name != case.baseline,
        rate=median(rates) if complete else 0.0,
        cost_ratio=median(ratios) if complete else 0.0,
        broker_cpu_us=_cpu_us(found[case.name], rates),
        error=errors.get(case.name, ""),
        measurements=found[case.name],
    )


def _cpu_us(measurements: list[Measurement], rates: list[float]) -> float | None:
    """The broker's processor time for one counted message."""
    known = [
        item.broker_cpu_us * item.processed_rate / max(rate, 1.0)
        for item, rate in zip(measurements, rates, strict=True)
        if item.broker_cpu_us is not None
    ]
    return median(known) if known else None
