"""Whether a second declare is equivalent to the first, with RabbitMQ's texts if it is not.

`resource` is how the texts name the declared object: "queue 'q' in vhost '/'".
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pandomq.broker.field_text import plain, type_name
from pandomq.errors import ChannelFault, precondition_failed

_ABSENT: Final = object()
_INTEGERS: Final = frozenset(
    ("byte", "unsignedbyte", "short", "unsignedshort", "signedint", "unsignedint", "long", "decimal")
)
_FLOATS: Final = frozenset(("float", "double"))


def check_field(name: str, resource: str, received: bool | str, current: bool | str) -> None:
    """Raises ChannelFault (406) unless both are the same."""
    if received != current:
        raise _inequivalent(name, resource, f"'{plain(received)}'", f"'{plain(current)}'")


def check_arguments(
    names: Iterable[str], resource: str, received: Mapping[str, Any], current: Mapping[str, Any]
) -> None:
    """Raises ChannelFault (406) for the first of these arguments that differs; numbers may differ in width."""
    for name in names:
        new = received.get(name, _ABSENT)
        old = current.get(name, _ABSENT)
        if new is _ABSENT and old is _ABSENT:
            continue
        if new is _ABSENT or old is _ABSENT:
            raise _inequivalent(name, resource, _described(new), _described(old))
        if _type_class(new) != _type_class(old) or new != old:
            raise _inequivalent(name, resource, f"'{plain(new)}'", f"'{plain(old)}'")


def _type_class(value: Any) -> str:
    name = type_name(value)
    if name in _INTEGERS:
        return "integer"
    return "float" if name in _FLOATS else name


def _described(value: Any) -> str:
    return "none" if value is _ABSENT else f"the value '{plain(value)}' of type '{type_name(value)}'"


def _inequivalent(name: str, resource: str, received: str, current: str) -> ChannelFault:
    return precondition_failed(
        f"inequivalent arg '{name}' for {resource}: received {received} but current is {current}"
    )
