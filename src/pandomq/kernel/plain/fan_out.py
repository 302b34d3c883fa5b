"""Puts a message that the root sends once for all private queues of this broker into each of them.

Publishes that may arrive twice, since they were sent again to another root, have a label: their publisher and an
increasing number.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.routes import Routes
    from pandomq.kernel.plain.runs import DeliveryRun

LABEL_BYTES: Final = 8


def label_of(producer: int) -> bytes:
    """The bytes in place of the consumer tag."""
    return producer.to_bytes(LABEL_BYTES, "big") if producer else b""


def fan_out(
    engine: "Engine", routes: "Routes", owner: Any, run: "DeliveryRun", seen: dict[int, int], now_ms: int
) -> None:
    for _, label, number, _, message in run.items:
        producer = int.from_bytes(label, "big") if len(label) == LABEL_BYTES else 0
        if producer:
            last = seen.pop(producer, 0)
            if number or last:
                # At the end: the first entries are the producers that have not published for the longest time.
                seen[producer] = max(number, last)
            if number <= last:
                continue
        plan = None if message.special else routes.find(message.routing)
        if plan is None:
            engine.hooks.fan_out(owner, message)
        elif plan.queues:
            engine.enqueue(None, message, plan.queues, 0, now_ms)
