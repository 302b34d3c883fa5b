"""Runs `pandomq pipeline simulate`."""

from __future__ import annotations

from pathlib import Path

from pandomq.cli.failures import RequestRejected
from pandomq.cli.pipeline.job_options import JobOptions
from pandomq.cli.pipeline.running import finish, progress, session_for
from pandomq.cli.sim.worlds import seed_range
from pandomq.pipeline.simulate import MixedVersions, simulate
from pandomq.pipeline.simulate_notes import OtherCampaign
from pandomq.sim.campaigns.campaign import Job


def run(
    job: JobOptions,
    *,
    seeds: str,
    nodes: int,
    log: bool,
    notes: Path | None,
) -> None:
    wanted = seed_range(seeds)
    with session_for("simulate", job.master) as session, progress("schedules", len(wanted)) as advance:
        try:
            summary = simulate(session, wanted, Job(0, nodes, log), advance, notes)
        except MixedVersions as mixed:
            raise RequestRejected(f"{mixed}; install the same version everywhere") from mixed
        except OtherCampaign as other:
            raise RequestRejected(str(other)) from other
    finish(summary, job)
