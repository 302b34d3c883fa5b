"""The requests of tasks and of the driver of a write to the broker.

A task attempt stages its rows under a new unique name: parts of publishes that no consumer gets. The driver names one
finished attempt for each partition, and the broker publishes those, in the order of partitions, in one decision for
(query, batch). Everything else that was staged for that batch is dropped; staged rows without a decision are dropped
after some time. All requests are idempotent: a client that lost an answer repeats its request at the next root.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from pyspark.sql.datasource import WriterCommitMessage

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import DataFailure, Refused, Unreachable
from pandomq.data_form import Fields
from pandomq.spark.sink.options import UnroutablePolicy

NO_ROUTE: Final = 312
_WAYS_OUT: Final = (
    "bind a queue, or give the exchange an alternate one; option unroutable=count drops such rows and counts them"
)


class UnroutableRows(RuntimeError):
    """No queue takes the rows."""


@dataclass(frozen=True)
class Writing:
    """Identifies the rows: the partition of a batch of a query."""

    query: str
    batch: int
    partition: int


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The rows that one task attempt has staged; sent from the executor to the driver."""

    writing: Writing
    attempt: str
    parts: int


def stage(
    client: DataClient,
    writing: Writing,
    parts: Iterable[bytes],
    queue: str | None,
    former_query: str | None = None,
    unroutable: UnroutablePolicy = UnroutablePolicy.COUNT,
) -> Staged:
    """Stages all parts of one attempt. `queue` has to exist, if it is given. `former_query` is the name that an earlier
    version gave to the same write: nothing is staged for a batch that was decided under that name. Raises
    UnroutableRows if they must fail."""
    # Attempt numbers begin again when a query is restarted: only a random name is certainly new.
    attempt = secrets.token_hex(8)
    fields: Fields = {**asdict(writing), "attempt": attempt}
    if queue is not None:
        fields["queue"] = queue
    elif unroutable is UnroutablePolicy.FAIL:
        fields["unroutable"] = "fail"
    count = 0
    try:
        for part in parts:
            if not count and former_query is not None and writing.batch <= client.last_own_batch(former_query):
                return Staged(writing, attempt, 0)
            answer, _ = client.ask("stage", {**fields, "part": count}, part, root=True)
            if answer.get("decided"):
                # The batch was published before, and is run again because Spark does not know that: there is nothing to
                # do.
                return Staged(writing, attempt, 0)
            count += 1
    except Unreachable:
        # The driver, which could drop it, is not there.
        raise
    except Exception as failure:
        drop(client, [Staged(writing, attempt, count)])
        if isinstance(failure, Refused) and failure.code == NO_ROUTE:
            raise UnroutableRows(f"{failure}: {_WAYS_OUT}") from failure
        raise
    return Staged(writing, attempt, count)


def commit(client: DataClient, staged: Sequence[Staged]) -> int:
    """Publishes the attempts of one batch, once, however often it is called. Returns how many of its messages no queue
    took, as far as the answering root has published them."""
    filled = sorted((one for one in staged if one.parts), key=lambda one: one.writing.partition)
    if not filled:
        return 0
    first = filled[0].writing
    chosen = [(one.writing.partition, one.attempt, one.parts) for one in filled]
    unroutable = client.commit(first.query, first.batch, chosen).get("unroutable", 0)
    return unroutable if isinstance(unroutable, int) else 0


def drop(client: DataClient, staged: Sequence[Staged]) -> None:
    """Drops staged rows that will not be published; if that fails, the broker drops them after some time."""
    filled = [one for one in staged if one.parts]
    if not filled:
        return
    first = filled[0].writing
    with contextlib.suppress(DataFailure):
        client.drop(first.query, first.batch, [(one.writing.partition, one.attempt) for one in filled])
