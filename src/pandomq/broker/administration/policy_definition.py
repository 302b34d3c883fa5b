"""The valid definitions of policies, with RabbitMQ's error texts, and how two policies and a queue's arguments combine.

Known are the keys of RabbitMQ 4, those of its 3.x line about mirrored queues (kept, without effect, so that definitions
can be imported), `replicate`, and the keys about streams' archives.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pandomq.broker.field_text import term
from pandomq.broker.queues.queue_arguments import CLASSIC, OVERFLOWS, QUORUM, REPLICATIONS, STREAM
from pandomq.broker.streams.ages import age_ms
from pandomq.broker.streams.packing import COMPRESSIONS
from pandomq.limits import EXCHANGE_NAME_BYTES_MAX, ROUTING_KEY_BYTES_MAX, SHORT_STRING_BYTES_MAX

Definition = Mapping[str, Any]

_Check = Callable[[Any], bool]


def _integer(least: int | None) -> _Check:
    return lambda value: type(value) is int and (least is None or value >= least)


def _one_of(*allowed: object) -> _Check:
    return lambda value: type(value) in (str, int) and value in allowed


def _text(bytes_max: int) -> _Check:
    return lambda value: isinstance(value, str) and len(value.encode("utf-8", "surrogatepass")) <= bytes_max


def _age(value: Any) -> bool:
    return isinstance(value, str) and age_ms(value) is not None


def _name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.encode("utf-8", "surrogatepass")) <= SHORT_STRING_BYTES_MAX


def _anything(value: Any) -> bool:
    return True


_CHECKS: Final[Mapping[str, tuple[_Check, str]]] = {
    "alternate-exchange": (_text(EXCHANGE_NAME_BYTES_MAX), "alternate exchange name"),
    "consumer-timeout": (_integer(0), "consumer timeout"),
    "dead-letter-exchange": (_text(EXCHANGE_NAME_BYTES_MAX), "dead letter exchange name"),
    "dead-letter-routing-key": (_text(ROUTING_KEY_BYTES_MAX), "dead letter routing key"),
    "dead-letter-strategy": (_one_of("at-most-once", "at-least-once"), "dead letter strategy"),
    "delivery-limit": (_integer(None), "delivery limit"),
    "expires": (_integer(1), "queue expiry"),
    "ha-mode": (_one_of("all", "exactly", "nodes"), "ha-mode value"),
    "ha-params": (_anything, "ha-params"),
    "ha-promote-on-failure": (_one_of("always", "when-synced"), "ha-promote-on-failure value"),
    "ha-promote-on-shutdown": (_one_of("always", "when-synced"), "ha-promote-on-shutdown value"),
    "ha-sync-batch-size": (_integer(1), "ha-sync-batch-size value"),
    "ha-sync-mode": (_one_of("automatic", "manual"), "ha-sync-mode value"),
    "initial-cluster-size": (_integer(0), "cluster size"),
    "max-age": (_age, "max age"),
    "max-unarchived-bytes": (_integer(0), "maximum size in bytes of messages that are not archived"),
    "max-in-memory-bytes": (_integer(0), "maximum memory in bytes"),
    "max-in-memory-length": (_integer(0), "maximum memory in bytes"),
    "max-length": (_integer(0), "maximum length"),
    "max-length-bytes": (_integer(0), "maximum length in bytes"),
    "message-ttl": (_integer(0), "message TTL"),
    "overflow": (_one_of(*OVERFLOWS), "overflow value"),
    "queue-leader-locator": (
        _one_of("client-local", "balanced", "random", "least-leaders"),
        "queue leader locator value",
    ),
    "queue-master-locator": (_text(255), "queue master locator"),
    "queue-mode": (_one_of("default", "lazy"), "queue-mode value"),
    "queue-version": (_one_of(1, 2), "queue-version value"),
    "retain-until-archived": (_name, "name of a stored offset"),
    "replicate": (_one_of(*REPLICATIONS), "replicate value"),
    "stream-compression": (_one_of(*COMPRESSIONS), "compression"),
    "stream-max-segment-size-bytes": (_integer(0), "segment size"),
    "target-group-size": (_integer(1), "qq target count value"),
    "x-replicate": (_one_of(*REPLICATIONS), "replicate value"),
}

_SMALLEST: Final = frozenset(
    ("expires", "message-ttl", "max-length", "max-length-bytes", "max-in-memory-length", "max-in-memory-bytes")
)
OPERATOR_KEYS: Final = _SMALLEST | {"delivery-limit", "overflow", "queue-version", "target-group-size"}

_STREAMS_ONLY: Final = frozenset(
    (
        "max-age",
        "stream-compression",
        "stream-max-segment-size-bytes",
        "initial-cluster-size",
        "retain-until-archived",
        "max-unarchived-bytes",
    )
)
_NOT_FOR: Final = {
    CLASSIC: _STREAMS_ONLY
    | {"dead-letter-strategy", "delivery-limit", "max-in-memory-length", "max-in-memory-bytes", "target-group-size"},
    QUORUM: _STREAMS_ONLY | {key for key in _CHECKS if key.startswith("ha-")} | {"queue-mode"},
    STREAM: _CHECKS.keys()
    - _STREAMS_ONLY
    - {"max-length-bytes", "queue-leader-locator", "replicate", "x-replicate", "alternate-exchange"},
}


def what_is_wrong(definition: Any, *, operator: bool) -> str | None:
    """The error in RabbitMQ's words; None if it is in order."""
    if not isinstance(definition, dict):
        return f"definition must be a dictionary: {json_term(definition)}"
    if not definition:
        return "no policy provided"
    known = OPERATOR_KEYS if operator else _CHECKS.keys()
    for key, value in definition.items():
        if key in known and not _CHECKS[key][0](value):
            return f"{json_term(value)} is not a valid {_CHECKS[key][1]}"
    unknown = [f"{{{term(key)},{json_term(value)}}}" for key, value in definition.items() if key not in known]
    return f"[{','.join(unknown)}] are not recognised policy settings" if unknown else None


_FOR_THOSE_NAMED: Final = frozenset(("delivery-limit",))
"""Our classic queues support these keys and RabbitMQ's do not: a policy for all queues means the other types by
them."""


def applicable(definition: Definition, queue_type: str, *, named: bool) -> bool:
    """A policy with any key that such a queue does not support does not apply to it. `named`: it is for this type
    only."""
    refused = _NOT_FOR[queue_type]
    return (refused - _FOR_THOSE_NAMED if named else refused).isdisjoint(definition)


def merge(definition: Definition, operator: Definition) -> Definition:
    """A policy combined with an operator's: of limits in both the stricter one counts, otherwise the operator's."""
    merged = {**definition, **operator}
    for key in _SMALLEST & definition.keys() & operator.keys():
        merged[key] = min(definition[key], operator[key])
    if "delivery-limit" in definition and "delivery-limit" in operator:
        merged["delivery-limit"] = stricter_delivery_limit(definition["delivery-limit"], operator["delivery-limit"])
    return merged


def stricter_delivery_limit(one: int, other: int) -> int:
    """Negative means none."""
    return max(one, other) if one < 0 or other < 0 else min(one, other)


def json_term(value: Any) -> str:
    """A value out of JSON as Erlang prints it."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{','.join(map(json_term, value))}]"
    if isinstance(value, dict):
        return f"#{{{','.join(f'{term(key)} => {json_term(entry)}' for key, entry in value.items())}}}"
    return term(value)
