"""Bugs between brokers, which show only when one broker takes over from another."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pandomq.broker.log import state_commands
from pandomq.broker.log.commands import Command, DeclareQueue
from pandomq.broker.log.revival import Revival
from pandomq.broker.queues.queue_settings import QueueSettings
from pandomq.kernel import Queue
from pandomq.node.log.clock_lead import ClockLead
from pandomq.node.log.cluster_time import ClusterTime
from pandomq.node.log.replication import Replication
from tests.sim.planted.planted_bug import Patch, PlantedBug

NODES: Final = 3


def _believe_wall_clock(patch: Patch) -> None:
    def credulous(time: ClusterTime, now_ms: int, told_ahead_ms: int | None, *, followed: bool) -> int:
        return now_ms

    patch.set(ClusterTime, "take_over", credulous)


def _forget_lead(patch: Patch) -> None:
    patch.set(ClockLead, "saved_ms", property(lambda lead: 0))
    patch.set(ClockLead, "compare", lambda lead, cluster_ms: None)


def _forget_deliveries(patch: Patch) -> None:
    finish = Revival.finish

    def trusting(revival: Revival, now_ms: int, *, takeover: bool = False, handed_over: bytes | None = None) -> None:
        finish(revival, now_ms, takeover=takeover, handed_over=handed_over or (b"\x90" if takeover else None))

    patch.set(Revival, "finish", trusting)


def _stay_in_office(patch: Patch) -> None:
    patch.set(Replication, "serving", property(lambda replication: replication.life.took_over))


def _log_local_messages(patch: Patch) -> None:
    configure = QueueSettings.configure

    def replicating(settings: QueueSettings, queue: Queue, *, local: bool) -> None:
        configure(settings, queue, local=False)

    patch.set(QueueSettings, "configure", replicating)


def _forget_local(patch: Patch) -> None:
    declare = state_commands._declare_queue

    def forgetful(queue: Any) -> Command:
        command = declare(queue)
        assert isinstance(command, DeclareQueue)
        return msgspec.structs.replace(command, honours_replicate=False)

    patch.set(state_commands, "_declare_queue", forgetful)


PLANTED_BUGS: Final = (
    PlantedBug(
        "time-by-wall-clock", "A new root uses its own wall clock for the cluster's time.", _believe_wall_clock, NODES
    ),
    PlantedBug(
        "clock-lead-forgotten",
        "After a restart of all brokers the new root uses its own wall clock for the cluster's time.",
        _forget_lead,
        NODES,
    ),
    PlantedBug(
        "takeover-trusts",
        "A new root does not set `redelivered` on messages that the last root may have delivered.",
        _forget_deliveries,
        NODES,
    ),
    PlantedBug(
        "office-without-lease", "A root continues to serve clients when its lease has expired.", _stay_in_office, NODES
    ),
    PlantedBug(
        "local-replicated",
        "The log has the messages of queues that are declared without replication of messages.",
        _log_local_messages,
        NODES,
    ),
    PlantedBug(
        "local-forgotten",
        "A snapshot does not say of a queue that its messages are not replicated.",
        _forget_local,
        NODES,
    ),
)
