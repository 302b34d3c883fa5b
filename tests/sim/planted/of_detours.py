"""Bugs that show only where brokers depend on a relay."""

from __future__ import annotations

from typing import Final

from pandomq.node.peers.dial_target import Target
from pandomq.node.peers.dialing import PeerDialing
from pandomq.node.peers.relays import Relay, Relays
from tests.sim.planted.planted_bug import Patch, PlantedBug

NODES: Final = 3
BUFFER_BYTES: Final = 2_048


def _keep_detour(patch: Patch) -> None:
    def look_away(dialing: PeerDialing, target: Target, now_ms: int) -> None:
        if target.knock is not None:
            dialing._tick(target.knock, now_ms)

    patch.set(PeerDialing, "_look_at_direct_way", look_away)


def _pass_on_one_buffer(patch: Patch) -> None:
    take = Relays.take

    def take_some(relays: Relays, relay: Relay, data: memoryview, now_ms: int) -> None:
        take(relays, relay, data[:BUFFER_BYTES], now_ms)

    patch.set(Relays, "take", take_some)


PLANTED_BUGS: Final = (
    PlantedBug(
        "detour-kept", "Brokers that use a relay do not check whether the direct path works again.", _keep_detour, NODES
    ),
    PlantedBug(
        "relay-cuts", "A relay drops what it has read beyond the size of one buffer.", _pass_on_one_buffer, NODES
    ),
)
