"""Bugs of staged batches: empty batches, a batch after an open one, several queries, and time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from pandomq.broker import deadlines
from pandomq.broker.log.commands import DecideBatch
from pandomq.broker.staging.decisions import Decisions
from pandomq.broker.staging.names import attempt_of
from pandomq.broker.staging.staging import Staging
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq.broker.administration.permissions import VhostAccess
    from pandomq.broker.broker import Broker
    from pandomq.broker.log.commands import FinishBatch
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.staging.expansion import OnFailed
    from pandomq.broker.staging.names import StagingAttempt
    from pandomq.broker.staging.staging import Chosen
    from pandomq.broker.vhost import Vhost


def _pass_over_empty(patch: Patch) -> None:
    apply = Decisions.apply

    def careless(decisions: Decisions, command: DecideBatch | FinishBatch) -> None:
        if not isinstance(command, DecideBatch) or command.attempts:
            apply(decisions, command)

    patch.set(Decisions, "apply", careless)


def _answer_open(patch: Patch) -> None:
    commit = Staging.commit

    def hasty(
        staging: Staging,
        vhost: Vhost,
        access: VhostAccess,
        query: str,
        batch: int,
        chosen: Sequence[Chosen],
        on_done: Callable[[], None],
        on_failed: OnFailed,
        now_ms: int,
    ) -> None:
        broker = staging._broker
        if batch <= broker.state.staged.last_batch(vhost.name, access.user, query):
            broker.held.call_when_committed(on_done)
        else:
            commit(staging, vhost, access, query, batch, chosen, on_done, on_failed, now_ms)

    patch.set(Staging, "commit", hasty)


def _drop_open(patch: Patch) -> None:
    patch.set(Decisions, "chose", lambda decisions, vhost, queue: False)


def _drop_others(patch: Patch) -> None:
    def sweeping(
        staging: Staging, vhost: Vhost, user: str, query: str, through: int, chosen: Collection[str]
    ) -> list[Queue]:
        unchosen = (queue for name, queue in vhost.inner_queues.items() if name not in chosen)
        known = ((attempt_of(queue.name), queue) for queue in unchosen if not staging.keeps(queue))
        return [queue for attempt, queue in known if attempt is not None and attempt.batch <= through]

    patch.set(Staging, "_others", sweeping)


def _keep_for_ever(patch: Patch) -> None:
    expire = deadlines._expire_queue

    def sparing(broker: Broker, queue: Queue, now_ms: int) -> None:
        if not queue.inner:
            expire(broker, queue, now_ms)

    patch.set(deadlines, "_expire_queue", sparing)


def _count_from_first(patch: Patch) -> None:
    stage = Staging.stage

    def forgetful(
        staging: Staging,
        vhost: Vhost,
        access: VhostAccess,
        attempt: StagingAttempt,
        part: int,
        frames: bytes,
        on_done: Callable[[bool], None],
        now_ms: int,
        *,
        routed: bool = False,
    ) -> None:
        queue = vhost.inner_queues.get(attempt.queue_name)
        used_ms = 0 if queue is None else queue.used_ms
        stage(staging, vhost, access, attempt, part, frames, on_done, now_ms, routed=routed)
        if queue is not None:
            queue.used_ms = used_ms

    patch.set(Staging, "stage", forgetful)


def _answer_last_early(patch: Patch) -> None:
    def hasty(
        staging: Staging, vhost: Vhost, user: str, query: str, on_done: Callable[[int], None], now_ms: int
    ) -> None:
        on_done(staging._begin(now_ms).state.staged.last_batch(vhost.name, user, query))

    patch.set(Staging, "last_batch", hasty)


PLANTED_BUGS: Final = (
    PlantedBug("empty-batch-forgotten", "A batch without messages does not count as decided.", _pass_over_empty),
    PlantedBug("open-batch-done", "The broker answers a repeated commit before the batch is published.", _answer_open),
    PlantedBug(
        "open-batch-dropped", "The next commit of a query drops the unpublished rest of the last batch.", _drop_open
    ),
    PlantedBug("commit-drops-queries", "A commit drops what other queries have staged.", _drop_others),
    PlantedBug("attempt-kept-for-ever", "An attempt that no commit names is never dropped.", _keep_for_ever),
    PlantedBug("attempt-not-renewed", "The age of an attempt counts from its first part.", _count_from_first),
    PlantedBug(
        "last-batch-early", "The broker reports the last batch before its decision is committed.", _answer_last_early
    ),
)
