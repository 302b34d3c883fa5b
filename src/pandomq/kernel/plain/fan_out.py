"""What the root sends once for all private queues of this broker goes to each of them.

Publishes that may come twice, since they were sent again to another root, are labelled: by their publisher and a number
that rises.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.routes import Routes
    from pandomq.kernel.plain.runs import DeliveryRun

LABEL_BYTES: Final = 8


def label_of(producer: int) -> bytes:
    """What stands in place of the consumer tag."""
    return producer.to_bytes(LABEL_BYTES, "big") if producer else b""


def fan_out(
    engine: "Engine", routes: "Routes", owner: Any, run: "DeliveryRun", seen: dict[int, int], now_ms: int
) -> None:
    for _, label, number, _, message in run.items:
        producer = int.from_bytes(label, "big") if len(label) == LABEL_BYTES else 0
        if producer:
            if number <= seen.get(producer, 0):
                continue
            seen[producer] = number
        plan = None if message.special else routes.find(message.routing)
        if plan is None:
            engine.hooks.fan_out(owner, message)
        elif plan.queues:
            engine.enqueue(None, message, plan.queues, 0, now_ms)
