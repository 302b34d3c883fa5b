"""Bugs of snapshots that clients do not notice soon: a broker that begins with such a snapshot differs from the
root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from pandomq import kernel
from pandomq.broker.log import snapshot
from pandomq.broker.log.commands import Command, PutPolicy, PutUser
from pandomq.broker.log.snapshot import BrokerSnapshotHead, KeptMessage, Part, Snapshot
from pandomq.broker.log.state_commands import commands_of
from pandomq.broker.publishing.named_producers import NamedProducers, Row
from pandomq.broker.state import ReplicatedState
from tests.sim.planted.planted_bug import Patch, PlantedBug


def _commands(change: Callable[[Command], Command]) -> Callable[[Patch], None]:
    """Replaces each command of a snapshot."""

    def plant(patch: Patch) -> None:
        patch.set(snapshot, "commands_of", lambda state: _changed(state))

    def _changed(state: ReplicatedState) -> Iterator[Command]:
        return (change(command) for command in commands_of(state))

    return plant


def _parts(change: Callable[[Part], Part]) -> Callable[[Patch], None]:
    """Replaces each part of a snapshot."""
    all_parts = Snapshot._all_parts

    def plant(patch: Patch) -> None:
        patch.set(Snapshot, "_all_parts", lambda one: (change(part) for part in all_parts(one)))

    return plant


def _without_definition(command: Command) -> Command:
    return msgspec.structs.replace(command, definition=b"{}") if isinstance(command, PutPolicy) else command


def _without_tags(command: Command) -> Command:
    return msgspec.structs.replace(command, tags=()) if isinstance(command, PutUser) else command


def _without_deadline(part: Part) -> Part:
    if not isinstance(part, KeptMessage):
        return part
    places = [(*place[:3], kernel.NEVER_MS, *place[4:]) for place in part.places]
    return msgspec.structs.replace(part, places=places)


def _without_deleted_queues(part: Part) -> Part:
    return msgspec.structs.replace(part, next_queue_id=1) if isinstance(part, BrokerSnapshotHead) else part


def _turn_producers_round(patch: Patch) -> None:
    reinstate = NamedProducers.reinstate

    def before_others(producers: NamedProducers, row: Row, user: str) -> None:
        reinstate(producers, row, user)
        producers._rows.move_to_end((row[0], user, row[1]), last=False)

    patch.set(NamedProducers, "reinstate", before_others)


PLANTED_BUGS: Final = (
    PlantedBug(
        "policy-without-effect", "A snapshot has policies without their definitions.", _commands(_without_definition)
    ),
    PlantedBug("user-without-tags", "A snapshot has users without their tags.", _commands(_without_tags)),
    PlantedBug(
        "snapshot-without-deadlines", "A snapshot has messages without their deadlines.", _parts(_without_deadline)
    ),
    PlantedBug("queue-ids-again", "A restored broker starts the ids of queues anew.", _parts(_without_deleted_queues)),
    PlantedBug("producers-turned-round", "A restored broker forgets the newest producer first.", _turn_producers_round),
)
