"""All planted bugs, by name."""

from __future__ import annotations

from typing import Final

from pandomq.sim.mutations import of_broker, of_cluster, of_fronts, of_journal, of_replica, of_streams
from pandomq.sim.mutations.mutation import Mutation

MUTATIONS: Final[dict[str, Mutation]] = {
    mutation.name: mutation
    for room in (of_journal, of_broker, of_replica, of_cluster, of_fronts, of_streams)
    for mutation in room.MUTATIONS
}
