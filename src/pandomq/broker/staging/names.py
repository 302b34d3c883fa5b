"""What staged parts are known by: the attempt of a task at one partition of one batch of a query.

Each attempt has an inner queue, whose name says all of it; its messages are the parts, in order.
"""

from typing import Final, NamedTuple

PREFIX: Final = "pandomq.staged."
_FIELDS: Final = 4


class Attempt(NamedTuple):
    batch: int
    partition: int
    name: str
    """Told apart from other attempts at the same by whoever makes them. Without a dot."""
    query: str

    @property
    def queue_name(self) -> str:
        return f"{PREFIX}{self.batch}.{self.partition}.{self.name}.{self.query}"


def attempt_of(queue_name: str) -> Attempt | None:
    """None if it is the name of something else."""
    if not queue_name.startswith(PREFIX):
        return None
    batch, partition, name, query = queue_name.removeprefix(PREFIX).split(".", _FIELDS - 1)
    return Attempt(int(batch), int(partition), name, query)
