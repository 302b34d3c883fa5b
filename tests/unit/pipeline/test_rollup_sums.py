"""Events to windows, against the obvious definition: one event after the other, with exact percentiles."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pandomq.pipeline.rollup import gathering, results, sketch, sums
from pandomq.pipeline.rollup.gathering import LATE, Gatherer
from pandomq.pipeline.rollup.results import PARTS, results_of
from pandomq.trace_form import Events, cluster_event
from tests.support.trace_windows import Key, windows
from tests.support.traces import BEGIN_US, batch_of, batches, message_events

SECOND_US = 1_000_000


def gathered(some: list[Events], watermark_us: int = 0) -> pa.Table:
    gatherer = Gatherer(watermark_us)
    for batch in some:
        gatherer.add(batch)
    return gatherer.sums()


def by_key(table: pa.Table) -> dict[Key, dict[str, Any]]:
    """Results by window, subject, name and measure."""
    lengths = sums.WINDOWS
    return {
        (
            lengths[row["window"]],
            round(row["time"].timestamp()) * SECOND_US,
            row["subject"],
            row["name"],
            row["within"],
            row["measure"],
        ): row
        for row in table.to_pylist()
    }


def check(table: pa.Table, some: list[Events]) -> None:
    found, expected = by_key(table), windows(some)
    assert found.keys() == expected.keys()
    for key, row in found.items():
        truth = expected[key]
        assert row["events"] == truth.events
        assert row["messages"] == pytest.approx(truth.messages)
        assert row["bytes"] == pytest.approx(truth.bytes)
        assert row["per_second"] == pytest.approx(truth.messages / key[0])
        mean = sum(truth.values) / len(truth.values) if truth.values else None
        assert row["mean"] == (mean if mean is None else pytest.approx(mean))
        for name, part in PARTS.items():
            exact = truth.percentile(part)
            if exact is None:
                assert row[name] is None
            else:
                assert row[name] == pytest.approx(exact, rel=sketch.ERROR * 1.001)
                assert row[name] <= row["highest"]
        assert row["highest"] == truth.percentile(1.0), "as it was, and not as its bucket has it"


@pytest.mark.proves("S5")
@pytest.mark.parametrize(("seed", "sample"), [(0, 1.0), (1, 0.01)])
def test_windows_agree_with_their_definition(seed: int, sample: float, monkeypatch: pytest.MonkeyPatch) -> None:
    some = batches(seed, messages=300, spacing_us=300_000, sample=sample)
    check(results_of(gathered(some)), some)
    # In small portions, too.
    monkeypatch.setattr(gathering, "EVENTS_AT_ONCE", 300)
    check(results_of(gathered(some)), some)


@pytest.mark.parametrize("seed", range(2))
def test_sums_of_parts_are_the_sums_of_the_whole(seed: int) -> None:
    some = batches(seed, messages=400, spacing_us=100_000)
    random.Random(seed).shuffle(some)
    parts = [gathered(some[:2]), gathered([]), gathered(some[2:])]
    check(results_of(sums.settled(parts)), some)


def test_results_become_sums_again() -> None:
    some = batches(5, messages=300, spacing_us=500_000)
    half = len(some) // 2
    parts = [results.as_sums(results_of(gathered(part))) for part in (some[:half], some[half:])]
    check(results_of(sums.settled(parts)), some)


def test_sums_of_version_0_1_do_not_know_the_highest() -> None:
    """Then it is that of its bucket, within the error of those."""
    some = batches(2, messages=200, spacing_us=100_000)
    table = gathered(some)
    place = table.schema.get_field_index("highest")
    old = table.set_column(place, "highest", pa.nulls(len(table), pa.float64()))
    expected = windows(some)
    for key, row in by_key(results_of(sums.settled([old]))).items():
        exact = expected[key].percentile(1.0)
        assert row["highest"] == (exact if exact is None else pytest.approx(exact, rel=sketch.ERROR * 1.001))


def test_no_events_give_no_windows() -> None:
    assert len(gathered([])) == len(gathered([batch_of([])])) == 0
    assert results_of(gathered([])).schema == results.SCHEMA
    assert len(results.as_sums(results_of(gathered([])))) == 0


def test_events_of_the_cluster_are_not_counted_as_messages() -> None:
    assert len(gathered([batch_of([cluster_event(BEGIN_US, "elected", {"root": "b1"})])])) == 0


def test_late_events_are_left_out_of_closed_windows_alone() -> None:
    some = batches(1, messages=300, spacing_us=200_000)
    watermark_us = BEGIN_US + 25 * SECOND_US
    table = gathered(some, watermark_us)
    late = {row["window_s"]: row["events"] for row in table.to_pylist() if row["subject"] == LATE}
    kept = table.filter(pa.array([subject != LATE for subject in table["subject"].to_pylist()]))
    found, expected = by_key(results_of(kept)), windows(some)
    still = {key for key in expected if key[1] + key[0] * SECOND_US > watermark_us}
    assert found.keys() == still and len(still) < len(expected)
    for length_s in sums.WINDOWS.values():
        missing = [row.events for key, row in expected.items() if key not in still and key[0] == length_s]
        brokers = [
            row.events
            for key, row in expected.items()
            if key not in still and key[0] == length_s and key[2] == "broker"
        ]
        assert late.get(length_s, 0) == sum(brokers)
        assert bool(missing) == bool(brokers)


def test_too_many_names_become_others() -> None:
    chance = random.Random(1)
    lives = [message_events(chance, number, BEGIN_US + number) for number in range(500)]
    table = gathered([batch_of(event for life in lives for event in life)])
    limited = sums.settled([table], names_max=3)
    assert sums.settled([limited], names_max=3).num_rows == limited.num_rows
    for length_s in sums.WINDOWS.values():
        keys: dict[str, float] = {}
        for row in table.to_pylist():
            if row["window_s"] == length_s and row["subject"] == "key":
                name = f"{row['name']} {row['within']}"
                keys[name] = keys.get(name, 0) + row["messages"]
        best = sorted(keys.items(), key=lambda item: (-item[1], item[0]))[:3]
        found: dict[str, float] = {}
        for row in limited.to_pylist():
            if row["window_s"] == length_s and row["subject"] == "key":
                name = f"{row['name']} {row['within']}"
                found[name] = found.get(name, 0) + row["messages"]
        others = found.pop(f"{sums.OTHERS} ")
        assert sorted(found.values()) == sorted(count for _, count in best)
        assert others == sum(keys.values()) - sum(found.values())


def test_names_that_are_no_text_do_no_harm() -> None:
    batch = batch_of(message_events(random.Random(3), 1, BEGIN_US))
    batch.queues[1] = batch.queues[1]._replace(name=b"\xff".decode("utf-8", "surrogateescape"))
    assert "\N{REPLACEMENT CHARACTER}" in gathered([batch])["name"].to_pylist()


def test_buckets() -> None:
    values = np.array([-1, 0, 1, 2, 3, 1000, 10**6, 2**32 - 1, 2**62])
    buckets = sketch.buckets_of(values)
    assert buckets[0] == sketch.UNKNOWN and buckets.max() < 2**12 - 1
    assert (np.diff(buckets) > 0).all()
    found = sketch.values_of(buckets)
    assert np.isnan(found[0]) and found[1] == 0
    assert found[2:] == pytest.approx(values[2:].astype(float), rel=sketch.ERROR * 1.0001)
