"""The declaration of a method: a frozen struct whose annotations are its layout on the wire.

The order of the fields is their order in the frame. Fields that the protocol reserves are no part of the struct: they
are written as zero and skipped when read, and the declaration names them as `before` or `after` the others. Fields of a
client's requests on a channel have the wire's zero as default; fields of the broker's replies have no default.
"""

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_args, get_type_hints

import msgspec


class WireType(Enum):
    """How a field is written in a method frame; adjacent bits share octets."""

    BIT = "bit"
    OCTET = "octet"
    SHORT = "short"
    LONG = "long"
    LONGLONG = "longlong"
    SHORT_STRING = "short string"
    LONG_STRING = "long string"
    TABLE = "table"


Bit = Annotated[bool, WireType.BIT]
Octet = Annotated[int, WireType.OCTET]
Short = Annotated[int, WireType.SHORT]
Long = Annotated[int, WireType.LONG]
LongLong = Annotated[int, WireType.LONGLONG]
ShortString = Annotated[str, WireType.SHORT_STRING]
LongString = Annotated[bytes, WireType.LONG_STRING]
Table = Annotated[dict[str, Any], WireType.TABLE]

TICKET: Final = (WireType.SHORT,)
"""The access ticket that AMQP 0-8 had; clients send anything in it."""


class Field(msgspec.Struct, frozen=True):
    """One field of a layout; a reserved one has no name."""

    name: str | None
    type: WireType


class Method(msgspec.Struct, frozen=True, gc=False):
    """The base class of all methods."""

    class_id: ClassVar[int] = 0
    method_id: ClassVar[int] = 0
    amqp_name: ClassVar[str] = ""
    has_content: ClassVar[bool] = False
    synchronous: ClassVar[bool] = False
    layout: ClassVar[tuple[Field, ...]] = ()


_Declared = TypeVar("_Declared", bound=type[Method])
_CLASS_NAMES: Final = ("Connection", "Channel", "Access", "Exchange", "Queue", "Basic", "Confirm", "Tx")


def _amqp_name(python_name: str) -> str:
    # QueueDeclareOk is queue.declare-ok.
    class_name = next(name for name in _CLASS_NAMES if python_name.startswith(name))
    rest = python_name.removeprefix(class_name)
    hyphenated = "".join("-" + letter.lower() if letter.isupper() else letter for letter in rest)
    return f"{class_name.lower()}.{hyphenated[1:]}"


def method(
    class_id: int,
    method_id: int,
    *,
    synchronous: bool = False,
    has_content: bool = False,
    before: tuple[WireType, ...] = (),
    after: tuple[WireType, ...] = (),
) -> Callable[[_Declared], _Declared]:
    """Declares a struct as this method; `before` and `after` are its reserved fields."""

    def declare(cls: _Declared) -> _Declared:
        hints = get_type_hints(cls, include_extras=True)
        cls.class_id = class_id
        cls.method_id = method_id
        cls.amqp_name = _amqp_name(cls.__name__)
        cls.has_content = has_content
        cls.synchronous = synchronous
        cls.layout = (
            *(Field(None, reserved) for reserved in before),
            *(Field(name, get_args(hints[name])[1]) for name in cls.__struct_fields__),
            *(Field(None, reserved) for reserved in after),
        )
        return cls

    return declare
