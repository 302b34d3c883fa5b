"""Writes the branches of the replica and the journal that simulated worlds reach into docs/coverage.md.

    python -m tools.sim_coverage [WORLDS]     so many seeds of each kind of world; 60 by default

Branches that no seed reaches are listed by their lines. A person explains them, beneath the table.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import coverage

from tools.generated_page import replace_between

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "coverage.md"
BEGIN: Final = "<!-- coverage: written by tools/sim_coverage.py -->\n"
END: Final = "<!-- end of coverage -->"
ROOMS: Final = ("replica", "journal")
WORLDS: Final = 60
BROKERS: Final = 3
"""The number of brokers in worlds with several."""


def run_worlds(count: int) -> None:
    """The imports are here, so that code that runs while modules are loaded counts, too."""
    from pandomq.sim.campaigns.campaign import Job, run_job
    from pandomq.sim.logs.plots.programme import PLOTS

    for seed in range(count):
        run_job(Job(seed, nodes=0, log=True))
        run_job(Job(seed))
        run_job(Job(seed, nodes=BROKERS))
    for plot in PLOTS.values():
        for seed, nodes in enumerate(plot.nodes):
            run_job(Job(seed, nodes=nodes, log=True, plot=plot.name))


def measure(count: int) -> dict[str, Any]:
    source = [f"pandomq.{room}" for room in ROOMS]
    measuring = coverage.Coverage(branch=True, source=source, data_file=None, config_file=False)
    measuring.exclude("if TYPE_CHECKING:")
    measuring.exclude("assert_never")
    measuring.start()
    run_worlds(count)
    measuring.stop()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        measuring.json_report(outfile=file.name)
        files: dict[str, Any] = json.loads(Path(file.name).read_text())["files"]
    return files


def row(name: str, found: dict[str, Any]) -> str:
    summary = found["summary"]
    # A branch that ends a function or a module goes to a line below 0.
    missed = sorted({start for start, _ in found["missing_branches"]} | set(found["missing_lines"]))
    lines = ", ".join(ranges(missed))
    return f"| {name} | {summary['covered_branches']} of {summary['num_branches']} | {lines} |"


def ranges(lines: list[int]) -> list[str]:
    """Combines consecutive lines into ranges."""
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][-1] + 1:
            spans[-1].append(line)
        else:
            spans.append([line])
    return [str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans]


def render(files: dict[str, Any], count: int) -> str:
    names = {str(Path(path)).partition("pandomq/")[2]: found for path, found in files.items()}
    rows = [row(name, found) for name, found in sorted(names.items()) if found["summary"]["num_branches"]]
    reached = sum(found["summary"]["covered_branches"] for found in files.values())
    total = sum(found["summary"]["num_branches"] for found in files.values())
    head = f"{reached} of {total} branches, by {count} seeds of each kind of world and all plots.\n\n"
    return (
        head
        + "| file | branches reached | lines that are not, or not both ways |\n| --- | --- | --- |\n"
        + "\n".join(rows)
    )


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else WORLDS
    table = render(measure(count), count)
    PAGE.write_text(replace_between(PAGE.read_text(), BEGIN, END, f"{table}\n"))
    print(table.partition("\n")[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
