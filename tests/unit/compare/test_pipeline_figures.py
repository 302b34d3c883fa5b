"""The page says of the pipelines what the figures say."""

import msgspec

from tools.compare.peers.machine import Machine
from tools.compare.pipelines import page
from tools.compare.pipelines.figures import ARCHIVE, AUDIT, Filling, JobRun, PipelineFigures, targets


def figures(others_share: float = 0.0) -> PipelineFigures:
    return PipelineFigures(
        day="2026-11-16",
        minutes=7.5,
        versions={"broker": "PandoMQ 0.1.0", "spark": "Spark 4.3.0"},
        machine=Machine(2, "a processor", 4.0, "Linux", "3.11"),
        others_share=others_share,
        fillings=[Filling(1000, 100, 0.1)],
        runs=[
            JobRun(ARCHIVE, 1000, 100, 1000, "rows", 0.02),
            JobRun(ARCHIVE, 10_000, 100, 10_000, "rows", 0.08),
            JobRun(AUDIT, 10_000, 100, 60_000, "records", 0.4),
        ],
        lake_bytes=1_234_567,
    )


def test_targets_are_judged_by_the_largest_run() -> None:
    assert [(target.measured, target.met) for target in targets(figures())] == [(125_000, True), (150_000, False)]
    bare = msgspec.structs.replace(figures(), runs=[])
    assert [(target.measured, target.met) for target in targets(bare)] == [(None, False), (None, False)]


def test_growth_is_from_the_smallest_to_the_largest() -> None:
    assert figures().growth(ARCHIVE) == 2.5
    assert figures().growth(AUDIT) is None


def test_the_page_shows_figures_and_warns_of_other_work() -> None:
    shown = page.section(figures())
    assert "| archive | 10,000 | 10,000 rows | 0.1 | 125,000 |" in shown
    assert "**missed**" in shown and "archive 2.50×" in shown
    assert "no result" not in shown
    assert "used 50% of the machine" in page.section(figures(0.5))
