"""The checker of acked messages: which of them may come again."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.sim.checkers.acked_gone import AckedGone
from pandomq.sim.ledger import BrokenPromise, Delivery, SentMessage, WorldLedger
from pandomq.sim.queues import PLAIN, QueueKind

LOCAL = QueueKind("local", {"x-replicate": "configuration"}, local=True)


@pytest.mark.parametrize(
    ("kind", "life", "legal"),
    [(PLAIN, 1, False), (PLAIN, 2, False), (LOCAL, 1, False), (LOCAL, 2, True)],
)
def test_a_proven_ack_holds_at_later_roots_only_for_what_the_log_has(kind: QueueKind, life: int, legal: bool) -> None:
    ledger = WorldLedger()
    ledger.kinds[kind.name] = kind
    message = SentMessage(1, 1, (kind.name,), False, 0, None, 1, 1_000)
    ledger.proven.add((kind.name, message))
    root: Any = SimpleNamespace(life=life)
    with nullcontext() if legal else pytest.raises(BrokenPromise, match="no acked message comes back"):
        AckedGone(ledger).emitted(Delivery(message, kind.name, True, False, None), root)
