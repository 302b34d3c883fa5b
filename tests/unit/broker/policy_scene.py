"""A queue, and policies for it."""

from __future__ import annotations

import json
from typing import Any

from pandomq.broker.log.commands import DeletePolicy, PutPolicy
from pandomq.broker.views import queues
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World


def policy(
    definition: dict[str, Any],
    *,
    name: str = "p",
    pattern: str = "^q",
    apply_to: str = "all",
    priority: int = 0,
    operator: bool = False,
) -> PutPolicy:
    return PutPolicy("/", name, pattern, apply_to, priority, json.dumps(definition).encode(), operator)


def follow(world: World, definition: dict[str, Any], **traits: Any) -> None:
    assert world.administer(policy(definition, **traits)) is None


def withdraw(world: World, name: str = "p", *, operator: bool = False) -> None:
    assert world.administer(DeletePolicy("/", name, operator)) is None


def scene(arguments: dict[str, Any] | None = None, **traits: Any) -> tuple[World, Peer]:
    world = World()
    peer = world.peer()
    peer.declare("q", arguments=arguments or {}, **traits)
    return world, peer


def publish(peer: Peer, count: int, **properties: Any) -> None:
    for number in range(count):
        peer.publish("", "q", bytes([number]), Properties(**properties))


def settings_of(world: World, name: str = "q") -> Any:
    return world.broker.state.vhosts["/"].queues[name].settings


def policies_of(world: World, name: str = "q") -> tuple[str | None, str | None]:
    (view,) = (view for view in queues(world.broker) if view.name == name)
    return view.policy, view.operator_policy
