"""All planted bugs, by name."""

from __future__ import annotations

from typing import Final

from tests.sim.planted import (
    of_ages,
    of_broker,
    of_cluster,
    of_detours,
    of_exceptions,
    of_founders,
    of_fronts,
    of_journal,
    of_leases,
    of_letters,
    of_named_successor,
    of_policies,
    of_pressure,
    of_reading,
    of_replica,
    of_rights,
    of_settling,
    of_snapshots,
    of_staging,
    of_streams,
    of_time,
    of_topics,
    of_turns,
    of_vhosts,
    of_visibility,
)
from tests.sim.planted.planted_bug import PlantedBug

MODULES: Final = (
    of_journal,
    of_broker,
    of_replica,
    of_cluster,
    of_fronts,
    of_streams,
    of_ages,
    of_detours,
    of_founders,
    of_exceptions,
    of_leases,
    of_letters,
    of_named_successor,
    of_policies,
    of_pressure,
    of_reading,
    of_rights,
    of_settling,
    of_snapshots,
    of_staging,
    of_time,
    of_topics,
    of_turns,
    of_vhosts,
    of_visibility,
)

PLANTED_BUGS: Final[dict[str, PlantedBug]] = {bug.name: bug for module in MODULES for bug in module.PLANTED_BUGS}
