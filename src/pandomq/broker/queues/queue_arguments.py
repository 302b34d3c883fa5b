"""The valid arguments of queue.declare, with RabbitMQ's error texts.

RabbitMQ accepts unknown arguments, and so does this broker. Beyond RabbitMQ's own there are `x-replicate` (also
`qpid.replicate`), `x-last-value-key`, and the arguments about streams' archives; and `x-delivery-limit` is not for
quorum queues only.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pandomq.broker.field_text import type_name
from pandomq.broker.queues.equivalence import check_arguments, check_field
from pandomq.broker.streams import arguments as of_streams
from pandomq.broker.streams.ages import INVALID, age_ms
from pandomq.broker.streams.packing import COMPRESSIONS
from pandomq.errors import ChannelFault, precondition_failed
from pandomq.limits import EXPIRATION_MS_MAX, PRIORITY_MAX, ROUTING_KEY_BYTES_MAX, SHORT_STRING_BYTES_MAX

Arguments = Mapping[str, Any]
_Check = Callable[[Any, Arguments], str | None]
"""Returns the error in a value, as Erlang prints it, or None."""

CLASSIC: Final = "classic"
QUORUM: Final = "quorum"
STREAM: Final = "stream"
OVERFLOWS: Final = ("drop-head", "reject-publish", "reject-publish-dlx")
NO_REPLICATION: Final = "none"
CONFIGURATION_ONLY: Final = "configuration"
REPLICATIONS: Final = (NO_REPLICATION, CONFIGURATION_ONLY, "messages", "all")

_INTEGER_TYPES: Final = frozenset(
    ("byte", "short", "signedint", "long", "unsignedbyte", "unsignedshort", "unsignedint")
)
_MODULES: Final = {CLASSIC: "rabbit_classic_queue", QUORUM: "rabbit_quorum_queue", STREAM: "rabbit_stream_queue"}
"""The names of the types in RabbitMQ's texts."""


def _integer(value: Any, _arguments: Arguments) -> str | None:
    name = type_name(value)
    return None if name in _INTEGER_TYPES else f'"expected integer, got {name}"'


def _not_negative(value: Any, arguments: Arguments) -> str | None:
    return _integer(value, arguments) or (f"{{value_negative,{value:d}}}" if value < 0 else None)


def _duration(value: Any, arguments: Arguments) -> str | None:
    too_large = f"{{value_too_large,{value:d}}}" if isinstance(value, int) and value > EXPIRATION_MS_MAX else None
    return _not_negative(value, arguments) or too_large


def _expires(value: Any, arguments: Arguments) -> str | None:
    return _integer(value, arguments) or ("{value_zero,0}" if value == 0 else _duration(value, arguments))


def _priority(value: Any, arguments: Arguments) -> str | None:
    too_large = f"{{max_value_exceeded,{value:d}}}" if isinstance(value, int) and value > PRIORITY_MAX else None
    return _not_negative(value, arguments) or too_large


def _string(value: Any, _arguments: Arguments) -> str | None:
    return None if isinstance(value, str) else f"{{unacceptable_type,{type_name(value)}}}"


def _boolean(value: Any, _arguments: Arguments) -> str | None:
    return None if isinstance(value, bool) else f"{{unacceptable_type,{type_name(value)}}}"


def _one_of(allowed: tuple[str, ...], error: str) -> _Check:
    def check(value: Any, arguments: Arguments) -> str | None:
        return _string(value, arguments) or (None if value in allowed else error)

    return check


def _dead_letter_key(value: Any, arguments: Arguments) -> str | None:
    wrong = _string(value, arguments)
    if wrong is None and "x-dead-letter-exchange" not in arguments:
        wrong = "routing_key_but_no_dlx_defined"
    # The value is a long string here, but a short one in every message.
    return wrong or (None if len(value.encode()) <= ROUTING_KEY_BYTES_MAX else "routing_key_too_long")


def _queue_type(value: Any, arguments: Arguments) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if value in _MODULES or value == "" else f"\"unsupported queue type '{value}'\"")


def _queue_mode(value: Any, arguments: Arguments) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if value in ("default", "lazy") else f"\"unsupported queue mode '{value}'\"")


def _queue_version(value: Any, arguments: Arguments) -> str | None:
    wrong = _not_negative(value, arguments)
    return wrong or (None if value in (1, 2) else f"\"unsupported queue version '{value:d}'\"")


def _last_value_key(value: Any, arguments: Arguments) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if 0 < len(value.encode()) <= SHORT_STRING_BYTES_MAX else "invalid_last_value_key")


def _age(value: Any, arguments: Arguments) -> str | None:
    return _string(value, arguments) or (None if age_ms(value) is not None else INVALID)


def _offset_name(value: Any, arguments: Arguments) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if 0 < len(value.encode()) <= SHORT_STRING_BYTES_MAX else "invalid_offset_name")


_CHECKS: Final[Mapping[str, _Check]] = {
    "x-expires": _expires,
    "x-message-ttl": _duration,
    "x-dead-letter-exchange": _string,
    "x-dead-letter-routing-key": _dead_letter_key,
    "x-dead-letter-strategy": _one_of(("at-most-once", "at-least-once"), "invalid_dlx_strategy"),
    "x-max-length": _not_negative,
    "x-max-length-bytes": _not_negative,
    "x-max-priority": _priority,
    "x-overflow": _one_of(OVERFLOWS, "invalid_overflow"),
    "x-queue-mode": _queue_mode,
    "x-queue-version": _queue_version,
    "x-single-active-consumer": _boolean,
    "x-consumer-timeout": _duration,
    "x-delivery-limit": _integer,
    "x-quorum-initial-group-size": _expires,
    "x-replicate": _one_of(REPLICATIONS, "invalid_replicate"),
    "qpid.replicate": _one_of(REPLICATIONS, "invalid_replicate"),
    "x-last-value-key": _last_value_key,
    "x-max-age": _age,
    of_streams.SEGMENT_BYTES: _not_negative,
    of_streams.FILTER_SIZE: _not_negative,
    of_streams.ARCHIVE: _offset_name,
    of_streams.UNARCHIVED_BYTES: _not_negative,
    of_streams.COMPRESSION: _one_of(COMPRESSIONS, "invalid_compression"),
    "x-initial-cluster-size": _not_negative,
}

_COMPARED: Final = (*_CHECKS, "x-queue-leader-locator", "x-queue-master-locator")
"""The arguments that a second declare must repeat."""

_NOT_FOR_QUORUM: Final = ("x-max-priority", "x-queue-mode", "x-queue-version", "x-last-value-key")
_NOT_FOR_CLASSIC: Final = ("x-dead-letter-strategy", "x-quorum-initial-group-size")


def queue_type(arguments: Arguments) -> str:
    return arguments.get("x-queue-type") or CLASSIC


def check_new(arguments: Arguments, resource: str, *, durable: bool, exclusive: bool, auto_delete: bool) -> None:
    """For a queue that does not exist yet: raises ChannelFault (406) for invalid arguments."""
    if not arguments:
        return
    exchange = arguments.get("x-dead-letter-exchange", "")
    if not isinstance(exchange, str):
        raise precondition_failed(
            f"invalid type '{type_name(exchange)}' for arg 'x-dead-letter-exchange' in {resource}"
        )
    if "x-queue-type" in arguments:
        _check("x-queue-type", _queue_type, arguments, resource)
    kind = queue_type(arguments)
    for name, check in _CHECKS.items():
        if name in arguments:
            _check(name, check, arguments, resource)
    if kind != STREAM:
        for name in (*(_NOT_FOR_QUORUM if kind == QUORUM else _NOT_FOR_CLASSIC), *of_streams.ONLY):
            if name in arguments:
                raise precondition_failed(f"invalid arg '{name}' for {resource} of queue type {_MODULES[kind]}")
    elif (refusal := of_streams.refusal(arguments, resource, _CHECKS)) is not None:
        raise refusal
    if kind != CLASSIC:
        for name in ("x-replicate", "qpid.replicate"):
            if arguments.get(name) in (NO_REPLICATION, CONFIGURATION_ONLY):
                raise _invalid(name, resource, f"messages of queue type {_MODULES[kind]} are always replicated")
        for refused, property_name in (
            (auto_delete, "auto-delete"),
            (exclusive, "exclusive-owner"),
            (not durable, "non-durable"),
        ):
            if refused:
                raise precondition_failed(f"invalid property '{property_name}' for {resource}")


def check_server_named(arguments: Arguments) -> None:
    """Raises ChannelFault (406) unless the broker may choose a name for such a queue."""
    kind = queue_type(arguments)
    if kind in (QUORUM, STREAM):
        raise precondition_failed(f"Cannot declare a server-named queue for type {_MODULES[kind]}")


def check_same(resource: str, received: tuple[bool, bool, Arguments], current: tuple[bool, bool, Arguments]) -> None:
    """For a queue that exists; durable, auto-delete and arguments. Raises ChannelFault (406, inequivalent arg …)."""
    check_field("durable", resource, received[0], current[0])
    check_field("auto_delete", resource, received[1], current[1])
    new, old = received[2], current[2]
    if not new and not old:
        return
    check_arguments(_COMPARED, resource, new, old)
    # No type and the type classic are the same.
    if queue_type(new) != queue_type(old):
        check_arguments(("x-queue-type",), resource, new, old)


def check_consumer(arguments: Arguments, resource: str, kind: str) -> None:
    """For basic.consume. Raises ChannelFault (406)."""
    if not arguments:
        return
    for name, check in (("x-priority", _integer), ("x-consumer-timeout", _duration)):
        if name in arguments:
            _check(name, check, arguments, resource)
    if "x-stream-offset" in arguments:
        raise precondition_failed(f"invalid arg 'x-stream-offset' for {resource} of queue type {_MODULES[kind]}")


def _check(name: str, check: _Check, arguments: Arguments, resource: str) -> None:
    wrong = check(arguments[name], arguments)
    if wrong is not None:
        raise _invalid(name, resource, wrong)


def _invalid(name: str, resource: str, wrong: str) -> ChannelFault:
    return precondition_failed(f"invalid arg '{name}' for {resource}: {wrong}")
