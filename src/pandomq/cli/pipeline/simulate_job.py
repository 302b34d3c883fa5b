"""Runs `pandomq pipeline simulate`."""

from __future__ import annotations

from pathlib import Path

from pandomq.cli.failures import Refused, WrongUse
from pandomq.cli.pipeline.running import finish, progress, session_for
from pandomq.cli.sim_worlds import seed_range
from pandomq.pipeline.simulate import MixedVersions, simulate
from pandomq.pipeline.simulate_notes import OtherCampaign
from pandomq.sim.campaign import Job
from pandomq.sim.mutations.catalogue import MUTATIONS


def run(
    *,
    seeds: str,
    nodes: int,
    log: bool,
    mutant: str,
    notes: Path | None,
    master: str,
    json: Path | None,
    report: Path | None,
) -> None:
    if mutant and mutant not in MUTATIONS:
        raise WrongUse(f"there is no planted bug {mutant!r}: known are {', '.join(MUTATIONS)}")
    wanted = seed_range(seeds)
    with session_for("simulate", master) as session, progress("schedules", len(wanted)) as advance:
        try:
            summary = simulate(session, wanted, Job(0, nodes, log, mutant), advance, notes)
        except MixedVersions as mixed:
            raise Refused(f"{mixed}; install the same version everywhere") from mixed
        except OtherCampaign as other:
            raise Refused(str(other)) from other
    finish(summary, json, report)
