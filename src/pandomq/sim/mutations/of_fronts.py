"""Bugs of brokers that serve in the root's name, and of roots that serve those."""

from __future__ import annotations

from typing import Final

from pandomq.broker.vhost import Vhost
from pandomq.cluster.proxy.proofs import Proofs
from pandomq.sim.mutations.mutation import Mutation, Patch

NODES: Final = 3


def _echo(patch: Patch) -> None:
    patch.set(Vhost, "outlet_to", lambda vhost, broker: None)


def _prove_lost_acks(patch: Patch) -> None:
    patch.set(Proofs, "lost", lambda proofs: None)
    patch.set(Proofs, "voids", lambda proofs, method_id, tag, *, multiple, requeue: False)


MUTATIONS: Final = (
    Mutation("front-hears-itself", "what a front forwards comes back to it from the root", _echo, NODES),
    Mutation("lost-acks-proven", "a confirm proves acks that went with the root", _prove_lost_acks, NODES),
)
