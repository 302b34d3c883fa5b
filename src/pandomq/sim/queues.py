"""The queues of a simulated world: of which kind they are, and what that allows to happen to a message."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import msgspec


class QueueKind(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Any] = {}
    durable: bool = True
    keeps: bool = True
    """What was confirmed stays until it is consumed; else its checker says what may go."""
    ordered: bool = True
    ttl_ms: int = 0
    length_max: int = 0
    refuses: bool = False
    """A full one nacks, and drops nothing."""
    last_value: bool = False
    priorities: int = 0
    dead_letters_to: str | None = None
    swept: bool = False
    """Who publishes to it purges it now and then."""
    stream: bool = False
    """It is read by offset, and nothing leaves it, unless it does not keep."""

    @property
    def drops(self) -> bool:
        """Messages go for no other reason than that there are more."""
        return bool(self.length_max) and not self.refuses


DEAD: Final = "dead"
PROOFS: Final = "proofs"
VALUE_KEY: Final = "key"
LONG_TTL_MS: Final = 3_600_000

_DEAD_LETTERING: Final = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}

PLAIN: Final = QueueKind("plain")
WHOLE: Final = QueueKind("whole")
"""For transactions."""
DEAD_LETTERS: Final = QueueKind(DEAD, ordered=False)
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
"""For publishers who number their messages."""
LEASED: Final = QueueKind("leased", ordered=False)
"""For those who lease; what comes back is behind others."""
STREAM: Final = QueueKind("stream", {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 3_000}, stream=True)
RIVER: Final = QueueKind(
    "river",
    {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 2_000, "x-max-length-bytes": 8_000},
    stream=True,
    keeps=False,
)
"""Its beginning is forgotten."""


REPLICATED_KINDS: Final = (
    *KINDS,
    QueueKind("copied", {"x-replicate": "messages"}),
    QueueKind("configured", {"x-replicate": "configuration"}),
    QueueKind("unasked", {"x-replicate": "none"}),
)
"""For worlds of several brokers: what is asked for is the least that is given."""


def draw_kinds(random: Random, known: Sequence[QueueKind] = KINDS) -> list[QueueKind]:
    """Plain ones always, and some of the others."""
    return [PLAIN, WHOLE, *random.sample(known, random.randint(1, 4))]
