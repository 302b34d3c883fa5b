"""The names of staged parts: the attempt of a task at one partition of one batch of a query.

Each attempt has an inner queue, whose name holds all of it; its messages are the parts, in order.
"""

from typing import Final, NamedTuple

PREFIX: Final = "pandomq.staged."
_FIELDS: Final = 4


class StagingAttempt(NamedTuple):
    batch: int
    partition: int
    name: str
    """Distinguishes attempts at the same partition; the writer chooses it. Without a dot."""
    query: str

    @property
    def queue_name(self) -> str:
        return f"{PREFIX}{self.batch}.{self.partition}.{self.name}.{self.query}"


def attempt_of(queue_name: str) -> StagingAttempt | None:
    """None if the queue is no attempt's."""
    if not queue_name.startswith(PREFIX):
        return None
    batch, partition, name, query = queue_name.removeprefix(PREFIX).split(".", _FIELDS - 1)
    return StagingAttempt(int(batch), int(partition), name, query)
