"""The queues of a simulated world: their kinds, and what may happen to messages in each kind."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import msgspec


class QueueKind(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any] = {}
    durable: bool = True
    local: bool = False
    """Only the root of several brokers has its messages."""
    keeps: bool = True
    """A confirmed message stays until it is consumed; otherwise the kind's checker defines which messages may go."""
    ordered: bool = True
    ttl_ms: int = 0
    length_max: int = 0
    refuses: bool = False
    """A full queue nacks publishes and drops nothing."""
    last_value: bool = False
    priorities: int = 0
    dead_letters_to: str | None = None
    swept: bool = False
    """Its publishers purge it now and then."""
    reborn: bool = False
    """The broker puts messages into it some time after they were published (dead letters, delayed messages). If a crash
    reverts that, the messages come once more, as new ones."""
    recurs: bool = False
    """A message may leave it and come back as a new one, any number of times."""
    stream: bool = False
    """Consumers read it by offset. No message leaves it, unless `keeps` is false."""
    tempts: bool = False
    """Clients may see a message before its publish is committed, so a crash at that time would be visible."""

    @property
    def is_logged(self) -> bool:
        """Whether the log of several brokers has its messages."""
        return self.durable and not self.local

    @property
    def drops(self) -> bool:
        """Whether messages are dropped only because more messages arrive."""
        return bool(self.length_max) and not self.refuses


DEAD: Final = "dead"
PROOFS: Final = "proofs"
VALUE_KEY: Final = "key"
LONG_TTL_MS: Final = 3_600_000

_DEAD_LETTERING: Final = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}

PLAIN: Final = QueueKind("plain")
WHOLE: Final = QueueKind("whole")
"""The queue of transactions."""
DEAD_LETTERS: Final = QueueKind(DEAD, ordered=False, reborn=True)
NOWHERE: Final = QueueKind("nowhere", durable=False, keeps=False)
"""Stands for the place of messages that no queue receives; no client declares it."""
PROOF: Final = QueueKind(PROOFS, {"x-max-length": 3}, keeps=False, length_max=3)

KINDS: Final = (
    QueueKind("quorum", {"x-queue-type": "quorum", "x-delivery-limit": 100_000}),
    QueueKind("priority", {"x-max-priority": 4}, priorities=4),
    QueueKind("patient", {"x-message-ttl": LONG_TTL_MS}, ttl_ms=LONG_TTL_MS),
    QueueKind("fleeting", {"x-message-ttl": 300}, keeps=False, ttl_ms=300),
    QueueKind(
        "dying", {"x-message-ttl": 200, **_DEAD_LETTERING}, ordered=False, ttl_ms=200, dead_letters_to=DEAD, keeps=True
    ),
    QueueKind("short", {"x-max-length": 7}, keeps=False, length_max=7),
    QueueKind("swept", keeps=False, swept=True),
    QueueKind("full", {"x-max-length": 9, "x-overflow": "reject-publish"}, refuses=True, length_max=9),
    QueueKind("values", {"x-last-value-key": VALUE_KEY}, keeps=False, last_value=True),
    QueueKind("passing", durable=False),
)


NUMBERED: Final = QueueKind("numbered")
"""The queue of publishers that number their messages."""
LEASED: Final = QueueKind("leased", ordered=False)
"""The queue of clients that lease; returned messages are behind others."""
STREAM: Final = QueueKind("stream", {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 3_000}, stream=True)
RIVER: Final = QueueKind(
    "river",
    {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 2_000, "x-max-length-bytes": 8_000},
    stream=True,
    keeps=False,
)
"""A stream that deletes its beginning."""


REPLICATED_KINDS: Final = (
    *KINDS,
    QueueKind("copied", {"x-replicate": "messages"}),
    QueueKind("configured", {"x-replicate": "configuration"}, local=True),
    QueueKind(
        "cramped",
        {"x-replicate": "configuration", "x-max-length": 9, "x-overflow": "reject-publish"},
        local=True,
        refuses=True,
        length_max=9,
    ),
)
"""The kinds for worlds of several brokers."""


def draw_kinds(random: Random, known: Sequence[QueueKind] = KINDS) -> list[QueueKind]:
    """Returns all plain kinds, and some of the others."""
    return [PLAIN, WHOLE, *random.sample(known, random.randint(1, 4))]
