"""Bugs of policies that are replaced or deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from pandomq.broker.administration import policies
from pandomq.broker.administration.policies import Effect, Policies, Policy, PolicyChange
from pandomq.broker.log.commands import DeletePolicy
from pandomq.broker.queues.queue import Queue
from pandomq.broker.vhost import Vhost
from tests.sim.planted.of_visibility import NODES, skip
from tests.sim.planted.planted_bug import Patch, PlantedBug


def _follow_replaced(patch: Patch) -> None:
    followed = Policies._followed

    def loyal(
        all_of_them: Policies, change: PolicyChange, before: Policy | None, matches: Callable[[Policy], bool]
    ) -> Policy | None:
        if before is not None and before is change.old and change.new is not None and matches(change.new):
            return change.new
        return followed(all_of_them, change, before, matches)

    patch.set(Policies, "_followed", loyal)


def _never_loosen(patch: Patch) -> None:
    follow = Queue.follow

    def strict(queue: Queue, policy: Effect | None) -> bool:
        before = queue.settings
        changed = follow(queue, policy)
        if changed and before.length_max >= 0 and queue.settings.length_max < 0:
            kept = msgspec.structs.replace(queue.settings, length_max=before.length_max, overflow=before.overflow)
            kept.configure(queue.kernel, local=queue.is_local)
        return changed

    patch.set(Queue, "follow", strict)


def _operator_decides(patch: Patch) -> None:
    patch.set(policies, "merge", lambda definition, operator: {**definition, **operator})


def _skip_deletion(patch: Patch) -> None:
    skip(patch, DeletePolicy)


def _skip_private(patch: Patch) -> None:
    policies_changed = Vhost.policies_changed

    def shared_only(vhost: Vhost, change: PolicyChange) -> list[Queue]:
        private = {name: queue for name, queue in vhost.queues.items() if queue.owner is not None}
        for name in private:
            del vhost.queues[name]
        changed = policies_changed(vhost, change)
        vhost.queues |= private
        return changed

    patch.set(Vhost, "policies_changed", shared_only)


def _new_queue_free(patch: Patch) -> None:
    add_queue = Vhost.add_queue

    def add(vhost: Vhost, queue: Queue) -> None:
        add_queue(vhost, queue)
        if queue.durable:
            queue.follow(None)

    patch.set(Vhost, "add_queue", add)


PLANTED_BUGS: Final = (
    PlantedBug(
        "replaced-policy-followed",
        "A queue follows the new version of its policy although another policy now has precedence.",
        _follow_replaced,
    ),
    PlantedBug("limit-never-loosened", "A queue keeps its limits after its policy was deleted.", _never_loosen),
    PlantedBug(
        "operator-decides", "An operator policy replaces the stricter value of an ordinary policy.", _operator_decides
    ),
    PlantedBug("front-keeps-policy", "Fronts do not apply the deletion of policies.", _skip_deletion, NODES),
    PlantedBug("private-queue-free", "Private queues do not follow changes of policies.", _skip_private, NODES),
    PlantedBug(
        "new-queue-free", "A durable queue that is declared after a policy does not follow the policy.", _new_queue_free
    ),
)
