"""Bugs by which an object is in force on one broker and not on another (R16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.log.commands import UnbindExchange
from pandomq.cluster.proxy.feed import Feed
from pandomq.kernel import NEVER_MS
from pandomq.node.front.serving_leases import EVERYTHING, NOTHING, FrontLease, ServingLeases
from pandomq.node.service_state import ServiceState
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq.broker.log.commands import Command
    from pandomq.cluster.serving import Grant

NODES: Final = 3


def skip(patch: Patch, *kinds: type[Command]) -> None:
    """Fronts do not follow these commands."""
    apply = Feed._apply

    def forgetful(feed: Feed, command: Command) -> None:
        if not (isinstance(command, kinds) and feed.begun):
            apply(feed, command)

    patch.set(Feed, "_apply", forgetful)


def _wait_for_nobody(patch: Patch) -> None:
    patch.set(ServingLeases, "applied_everywhere", lambda leases, now_ms: EVERYTHING)


def _serve_for_ever(patch: Patch) -> None:
    def endless(lease: FrontLease, root: str, grant: Grant) -> None:
        lease._ends_ms = NEVER_MS

    def stay(lease: FrontLease) -> None:
        lease._root = ""

    patch.set(FrontLease, "granted", endless)
    patch.set(FrontLease, "give_up", stay)


def _serve_before_applied(patch: Patch) -> None:
    granted = FrontLease.granted

    def hasty(lease: FrontLease, root: str, grant: Grant) -> None:
        granted(lease, root, msgspec.structs.replace(grant, after_index=NOTHING))

    patch.set(FrontLease, "granted", hasty)


def _begin_without_leases(patch: Patch) -> None:
    begin = ServingLeases.begin
    patch.set(ServingLeases, "begin", lambda leases, brokers, now_ms: begin(leases, (), now_ms))


def _let_in_without_lease(patch: Patch) -> None:
    patch.set(ServiceState, "lacks_lease", property(lambda service_state: False))


def _skip_unbind(patch: Patch) -> None:
    skip(patch, UnbindExchange)


PLANTED_BUGS: Final = (
    PlantedBug(
        "answer-before-fronts", "The root answers a declare before fronts have applied it.", _wait_for_nobody, NODES
    ),
    PlantedBug(
        "lease-for-ever",
        "A front that once had a serving lease continues to serve without one.",
        _serve_for_ever,
        NODES,
    ),
    PlantedBug(
        "lease-before-applied",
        "A front serves before it has applied the configuration that its lease requires.",
        _serve_before_applied,
        NODES,
    ),
    PlantedBug(
        "leases-of-last-root",
        "A new root does not wait for fronts that the last root served.",
        _begin_without_leases,
        NODES,
    ),
    PlantedBug("login-without-lease", "A front without a serving lease accepts logins.", _let_in_without_lease, NODES),
    PlantedBug(
        "front-keeps-binding", "Fronts do not apply the removal of bindings between exchanges.", _skip_unbind, NODES
    ),
)
