"""What a task does at the broker, and what the driver does with what tasks did.

A task attempt stages its rows under a name of its own, which nobody used before: parts of publishes that no consumer
sees. The driver names one finished attempt for each partition, and the broker publishes those, in the order of
partitions, in one decision for (query, batch). Whatever else was staged for that batch is dropped; so is, after a
while, what nobody decides about. All that is asked here may be asked again: a client that lost an answer repeats its
request at the next root.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql.datasource import WriterCommitMessage

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import DataFailure, Unreachable
from pandomq.data_form import Fields


@dataclass(frozen=True)
class Writing:
    """Which rows: the partition of a batch of a query."""

    query: str
    batch: int
    partition: int


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What one task attempt has staged; travels from the executor to the driver."""

    writing: Writing
    attempt: str
    parts: int


def stage(client: DataClient, writing: Writing, parts: Iterable[bytes], queue: str | None) -> Staged:
    """All parts of one attempt. `queue` has to exist, if it is given."""
    # Numbers of attempts begin anew when a query is restarted: only chance makes a name that was never used.
    attempt = secrets.token_hex(8)
    fields: Fields = {**asdict(writing), "attempt": attempt}
    if queue is not None:
        fields["queue"] = queue
    count = 0
    try:
        for part in parts:
            answer, _ = client.ask("stage", {**fields, "part": count}, part, root=True)
            if answer.get("decided"):
                # The batch was published before, and is run again because Spark does not know: there is nothing to do.
                return Staged(writing, attempt, 0)
            count += 1
    except Unreachable:
        # Whoever could drop it is not there.
        raise
    except Exception:
        drop(client, [Staged(writing, attempt, count)])
        raise
    return Staged(writing, attempt, count)


def commit(client: DataClient, staged: Sequence[Staged]) -> None:
    """Makes the attempts of one batch visible, once, however often it is asked."""
    filled = sorted((one for one in staged if one.parts), key=lambda one: one.writing.partition)
    if not filled:
        return
    first = filled[0].writing
    client.commit(first.query, first.batch, [(one.writing.partition, one.attempt, one.parts) for one in filled])


def drop(client: DataClient, staged: Sequence[Staged]) -> None:
    """Gives back what will not be published; if that fails, time does it."""
    filled = [one for one in staged if one.parts]
    if not filled:
        return
    first = filled[0].writing
    with contextlib.suppress(DataFailure):
        client.drop(first.query, first.batch, [(one.writing.partition, one.attempt) for one in filled])
