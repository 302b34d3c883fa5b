"""Field values in the words of RabbitMQ's error texts, which client suites compare.

`type_name` is RabbitMQ's name of a value's wire type; `term` is the value as Erlang prints it.
"""

from decimal import Decimal
from typing import Any, Final

from pandomq.fieldtable import (
    Float32,
    Int8,
    Int16,
    Int32,
    Int64L,
    OctetString,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
)

_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    Int8: "byte",
    UInt8: "unsignedbyte",
    Int16: "short",
    UInt16: "unsignedshort",
    Int32: "signedint",
    UInt32: "unsignedint",
    int: "long",
    Int64L: "long",
    Timestamp: "timestamp",
    Float32: "float",
    float: "double",
    Decimal: "decimal",
    str: "longstr",
    OctetString: "longstr",
    bytes: "binary",
    list: "array",
    dict: "table",
    type(None): "void",
}

_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def type_name(value: Any) -> str:
    return _TYPE_NAMES[type(value)]


def term(value: Any) -> str:
    """The value as Erlang's ~tp prints it."""
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        scale = max(0, -int(value.as_tuple().exponent))
        return f"{{{scale},{int(value.scaleb(scale))}}}"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return str(float(value))
    if isinstance(value, str | bytes):
        return _binary(value)
    if isinstance(value, list):
        return "[" + ",".join(f"{{{type_name(entry)},{term(entry)}}}" for entry in value) + "]"
    fields = (f"{{{_binary(name)},{type_name(entry)},{term(entry)}}}" for name, entry in value.items())
    return "[" + ",".join(fields) + "]"


def plain(value: Any) -> str:
    """A string as it is, anything else as a term: the form in which the texts quote values."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return term(value)


def name_of(value: str | OctetString) -> str:
    """A long string as the name of something: decoded like the names in methods."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def _binary(value: str | bytes) -> str:
    if not value:
        return "<<>>"
    octets = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not text or not all(letter.isprintable() or letter in _ESCAPES for letter in text):
        return "<<" + ",".join(map(str, octets)) + ">>"
    quoted = "".join(_ESCAPES.get(letter, letter) for letter in text)
    return f'<<"{quoted}">>' if text.isascii() else f'<<"{quoted}"/utf8>>'
