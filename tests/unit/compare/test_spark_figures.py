"""The page says of Spark what the figures say."""

from tools.compare.peers.machine import Machine
from tools.compare.spark import page
from tools.compare.spark.figures import (
    ALL_COLUMNS,
    EMPTY_SINK,
    EMPTY_SOURCE,
    SOURCE,
    SOURCE_AND_SINK,
    SPARKS_OWN,
    SparkFigures,
    targets,
)


def figures(others_share: float = 0.0) -> SparkFigures:
    return SparkFigures(
        day="2026-11-16",
        versions={"broker": "PandoMQ 0.1.0", "spark": "Spark 4.3.0"},
        machine=Machine(2, "a processor", 4.0, "Linux", "3.11"),
        others_share=others_share,
        rows=1_000_000,
        read={ALL_COLUMNS: [310_000.0, 290_000.0, 400_000.0]},
        write=[50_000.0, 70_000.0],
        batch_ms={
            SPARKS_OWN: [120.0],
            EMPTY_SOURCE: [130.0],
            SOURCE: [140.0, 150.0],
            EMPTY_SINK: [200.0],
            SOURCE_AND_SINK: [260.0],
        },
        broker_cpu_us=0.4,
        disk_bytes_per_byte=2.1,
    )


def test_targets_are_judged_by_medians() -> None:
    assert [(target.measured, target.met) for target in targets(figures())] == [
        (310_000, True),
        (60_000, True),
        (25, True),
        (15, True),
        (60, False),
    ]


def test_a_target_that_was_not_measured_is_not_met() -> None:
    bare = SparkFigures(**{**{name: getattr(figures(), name) for name in figures().__struct_fields__}, "write": []})
    assert [target.met for target in targets(bare)] == [True, False, True, True, False]


def test_the_page_shows_figures_and_warns_of_other_work() -> None:
    shown = page.section(figures())
    assert "310,000" in shown and "Spark 4.3.0" in shown and "**missed**" in shown
    assert "no result" not in shown
    assert "used 50% of the machine" in page.section(figures(0.5))
