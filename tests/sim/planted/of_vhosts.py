"""Bugs of vhosts, and of streams with a maximum age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.administration.administration import Administration
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import KeptChunk
from pandomq.broker.publishing.named_producers import NamedProducer, NamedProducers
from pandomq.broker.state import ReplicatedState
from pandomq.broker.streams import stream
from pandomq.broker.streams.retention import is_too_much
from pandomq.broker.vhost import Vhost
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq import kernel
    from pandomq.broker.administration.permissions import VhostAccess
    from pandomq.broker.client import Client
    from pandomq.broker.log.snapshot import KeptStream
    from pandomq.broker.queues.queue_settings import QueueSettings
    from pandomq.broker.streams.chunk_index import ChunkIndex


def _routes_of_users(patch: Patch) -> None:
    access_of = Vhost.access_of
    known: dict[tuple[kernel.Engine, str], kernel.Routes] = {}

    def shared(vhost: Vhost, user: str) -> VhostAccess:
        access = access_of(vhost, user)
        access.routes = known.setdefault((vhost.engine, user), access.routes)
        return access

    patch.set(Vhost, "access_of", shared)


def _producers_of_all(patch: Patch) -> None:
    find = NamedProducers.find

    def anywhere(producers: NamedProducers, vhost: str, user: str, name: str) -> NamedProducer | None:
        found = find(producers, vhost, user, name)
        return found or next((producer for producer in producers if producer.name == name), None)

    patch.set(NamedProducers, "find", anywhere)


def _stay_connected(patch: Patch) -> None:
    close = Administration._close

    def polite(administration: Administration, concerned: Callable[[Client], bool], reason: str) -> None:
        if not reason.startswith("vhost"):
            close(administration, concerned, reason)

    patch.set(Administration, "_close", polite)


def _come_back(patch: Patch) -> None:
    make = ReplicatedState.make_vhost
    deleted: dict[tuple[ReplicatedState, str], Vhost] = {}

    def forget(state: ReplicatedState, name: str) -> None:
        deleted[state, name] = state.vhosts.pop(name)

    def remember(state: ReplicatedState, name: str) -> Vhost:
        known = deleted.pop((state, name), None)
        if known is None:
            return make(state, name)
        state.vhosts[name] = known
        return known

    patch.set(ReplicatedState, "delete_vhost", forget)
    patch.set(ReplicatedState, "make_vhost", remember)


def _any_age(patch: Patch) -> None:
    judge = is_too_much

    def patient(index: ChunkIndex, settings: QueueSettings, now_us: int) -> bool:
        return judge(index, msgspec.structs.replace(settings, max_age_ms=-1), now_us)

    patch.set(stream, "is_too_much", patient)


def _age_in_wrong_unit(patch: Patch) -> None:
    judge = is_too_much

    def hasty(index: ChunkIndex, settings: QueueSettings, now_us: int) -> bool:
        return judge(index, msgspec.structs.replace(settings, max_age_ms=settings.max_age_ms // 1000), now_us)

    patch.set(stream, "is_too_much", hasty)


def _times_not_kept(patch: Patch) -> None:
    take = Revival._take_stream

    def timeless(revival: Revival, kept: KeptChunk | KeptStream) -> None:
        if isinstance(kept, KeptChunk):
            kept = msgspec.structs.replace(kept, first_time_us=0, last_time_us=0)
        take(revival, kept)

    patch.set(Revival, "_take_stream", timeless)


PLANTED_BUGS: Final = (
    PlantedBug("routes-of-users", "A cached route of a user is used in all vhosts.", _routes_of_users),
    PlantedBug("producers-of-all", "A producer's name denotes the same producer in all vhosts.", _producers_of_all),
    PlantedBug(
        "deleted-vhost-connected", "The broker does not close the connections to a deleted vhost.", _stay_connected
    ),
    PlantedBug(
        "deleted-vhost-returns", "A new vhost gets the content of a deleted vhost with the same name.", _come_back
    ),
    PlantedBug("any-age", "A stream never drops messages by their age.", _any_age),
    PlantedBug("age-in-seconds", "A stream drops messages at a thousandth of their maximum age.", _age_in_wrong_unit),
    PlantedBug("times-not-kept", "After a restart all chunks from a snapshot count as too old.", _times_not_kept),
)
