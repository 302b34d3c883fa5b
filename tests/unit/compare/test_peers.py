"""The page about the peers is written from figures: medians, ratios within rounds, targets."""

import msgspec
import pytest

from pandomq.bench.measurements.features import CASES
from tools.compare.peers import works
from tools.compare.peers.comparison import Comparison
from tools.compare.peers.ledger import FAST, PLAIN, RABBITMQ, Ledger
from tools.compare.peers.machine import this_machine
from tools.compare.peers.page import page
from tools.compare.peers.targets import targets

SIXTEEN = works.WORKS[0].subject


def ledger_of_three_rounds() -> Ledger:
    ledger = Ledger()
    for rabbit, fast, plain in ((100.0, 1300.0, 90.0), (200.0, 2000.0, 210.0), (100.0, 1200.0, 120.0)):
        ledger.note(SIXTEEN, RABBITMQ, works.RATE, rabbit)
        ledger.note(SIXTEEN, FAST, works.RATE, fast)
        ledger.note(SIXTEEN, PLAIN, works.RATE, plain)
        for case in CASES:
            ledger.note(works.FEATURE_PREFIX + case.name, FAST, works.RATIO, 1.2 if case.targeted else 3.0)
        ledger.note(works.FLATNESS_PREFIX + "1 to 1,000 queues", FAST, works.RATIO, 1.4)
        ledger.rounds += 1
    return ledger


def test_ratios_are_taken_within_rounds() -> None:
    ledger = ledger_of_three_rounds()
    assert ledger.median(SIXTEEN, FAST, works.RATE) == 1300.0
    assert ledger.ratio(SIXTEEN, works.RATE, FAST) == 12.0
    assert ledger.ratio(SIXTEEN, works.RATE, PLAIN) == 1.05


def test_a_round_without_a_value_does_not_shift_the_others() -> None:
    ledger = Ledger()
    ledger.note("work", RABBITMQ, works.RATE, 10.0)
    ledger.note_error("work", FAST, works.RATE, "refused")
    ledger.rounds += 1
    ledger.note("work", RABBITMQ, works.RATE, 20.0)
    ledger.note("work", FAST, works.RATE, 60.0)
    assert ledger.ratio("work", works.RATE, FAST) == 3.0
    assert ledger.figure("work", FAST, works.RATE).errors == ["refused"]


def test_targets_are_met_missed_or_not_measured() -> None:
    found = {target.name: target for target in targets(ledger_of_three_rounds(), works.QUICK)}
    assert found[f"{SIXTEEN}: {FAST}"].met
    assert found[f"{SIXTEEN}: {PLAIN}"].met
    assert found["cost per message, 1 to 1,000 queues"].met is False
    assert found["connections opened"].measured is None
    assert not found["connections opened"].met
    (features,) = [target for name, target in found.items() if name.startswith("every queue argument")]
    assert features.measured == pytest.approx(1.2)


def test_the_page_is_written_from_the_json_alone() -> None:
    comparison = Comparison(
        day="2026-01-02",
        minutes=1.0,
        machine=this_machine(),
        versions={RABBITMQ: "RabbitMQ 3.10.8", FAST: "PandoMQ 0.1", PLAIN: "PandoMQ 0.1"},
        scale=works.QUICK,
        ledger=ledger_of_three_rounds(),
        others_share=0.01,
    )
    again = msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison)
    text = page(again)
    assert text == page(comparison)
    assert f"| {SIXTEEN} | messages/s | 100 | 1,300 | 120 | 12.00× | 1.05× |" in text
    assert "PandoMQ 0.1, RabbitMQ 3.10.8" in text
    assert "Other programs" not in text
    comparison.others_share = 0.3
    assert "Other programs used 30% of the machine" in page(comparison)


def test_long_queues_are_held_against_their_limits() -> None:
    ledger = Ledger()
    large, *_, small = works.long_works(works.QUICK)
    ledger.note(large.subject, FAST, works.MEMORY_UNIT, 249.0)
    ledger.note(large.subject, RABBITMQ, works.MEMORY_UNIT, 1300.0)
    ledger.note(large.subject, FAST, works.RESTART_UNIT, 10.5)
    ledger.note(small.subject, FAST, works.MEMORY_UNIT, 390.0)
    ledger.note(works.CHURN_SUBJECT, FAST, works.CHURN_DISK_UNIT, 1.1)
    ledger.note(works.PERSISTENT_LATENCY_SUBJECT, FAST, works.CONFIRM_P99_UNIT, 9000.0)
    found = {target.name: target for target in targets(ledger, works.QUICK)}
    assert found[f"{large.subject}: memory"].met
    assert found[f"{small.subject}: memory"].met
    assert found[f"{large.subject}: restart"].measured == 10.5
    assert not found[f"{large.subject}: restart"].met
    assert found[f"{large.subject}: restart after a kill"].measured is None
    assert found[f"{works.CHURN_SUBJECT}: the disk does not grow"].met
    assert not found[f"{works.CHURN_SUBJECT}: the memory does not grow"].met
    assert found[f"{works.PERSISTENT_LATENCY_SUBJECT}: confirm p99"].measured == 9.0
    # In the rounds that follow, what was measured once keeps its place.
    ledger.rounds = 3
    assert ledger.median(large.subject, FAST, works.MEMORY_UNIT) == 249.0
