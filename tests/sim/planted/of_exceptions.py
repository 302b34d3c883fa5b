"""Bugs that show only where an unexpected exception is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.containment import Containment, internal_failure
from pandomq.journal.faults import StoreFault
from pandomq.node import containment as node_containment
from pandomq.node.output import Output
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.node.containment import EndLife, Guard, Step

NODES: Final = 3


def _trust_state(patch: Patch) -> None:
    def note(contained: Containment, error: Exception, changes: int, client: Client | None = None) -> None:
        contained.caught.append((client, error))

    patch.set(Containment, "note", note)


def _drop_batch(patch: Patch) -> None:
    def run(guard: Guard, step: Step, end_life: EndLife | None, now_ms: int, monotonic_ms: int | None) -> Output:
        try:
            return step(now_ms, monotonic_ms)
        except StoreFault:
            raise
        except Exception as error:
            guard.doubt(error)
            guard.in_doubt = False
            return Output([], [], True, ())

    patch.set(node_containment.Guard, "run", run)


def _close_everybody(patch: Patch) -> None:
    close = Containment.close_in_run

    def close_all(contained: Containment, client: Client, error: Exception, changes: int) -> None:
        close(contained, client, error, changes)
        for other in list(contained._broker.clients):
            contained._broker.faults.close_client(other, internal_failure())

    patch.set(Containment, "close_in_run", close_all)


PLANTED_BUGS: Final = (
    PlantedBug(
        "changed-state-trusted", "A broker continues with state that a failed request has changed.", _trust_state
    ),
    PlantedBug("failed-batch-dropped", "A broker continues after a batch that it has not finished.", _drop_batch),
    PlantedBug(
        "failure-closes-all",
        "The exception of one client's request closes the connections of all clients.",
        _close_everybody,
    ),
)
