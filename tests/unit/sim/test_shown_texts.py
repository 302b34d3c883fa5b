"""The texts of planted bugs, plots and rights, which pages and tables show, are full sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandomq.broker.administration.rights import AMQP, DATA
from pandomq.sim.logs.plots.programme import PLOTS
from tests.sim.planted.catalogue import PLANTED_BUGS
from tools.house_rules_strings import help_breaches

ABOUT = {
    **{name: bug.about for name, bug in PLANTED_BUGS.items()},
    **{name: plot.about for name, plot in PLOTS.items()},
    **{operation.name: operation.note for operation in (*AMQP, *DATA.values()) if operation.note},
}
SIMULATOR = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text()


@pytest.mark.parametrize("name", ABOUT)
def test_a_text_is_full_sentences(name: str) -> None:
    assert list(help_breaches(ABOUT[name].replace("`", ""))) == []


@pytest.mark.parametrize("name", PLOTS)
def test_the_page_of_the_simulator_lists_the_plot(name: str) -> None:
    assert f"| {name} | {PLOTS[name].about} |" in SIMULATOR
