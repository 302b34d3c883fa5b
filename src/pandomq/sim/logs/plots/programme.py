"""All plots, by name."""

from __future__ import annotations

from typing import Final

from pandomq.sim.logs.plot import Plot
from pandomq.sim.logs.plots import copies, epochs, laggards, members, memory, votes

PLOTS: Final[dict[str, Plot]] = {
    plot.name: plot for act in (votes, copies, memory, members, epochs, laggards) for plot in act.PLOTS
}
