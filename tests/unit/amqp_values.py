"""Hypothesis strategies for field tables, properties and methods, and what reading them may come to."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from pandomq import fieldtable
from pandomq.errors import ConnectionFault
from pandomq.methods import METHODS, Method, WireType
from pandomq.properties import Properties


def short_strings(*, any_octets: bool = False) -> st.SearchStrategy[str]:
    """At most 255 octets; with surrogate escapes if any octets are allowed."""
    if any_octets:
        return st.binary(max_size=255).map(lambda octets: octets.decode("utf-8", "surrogateescape"))
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=255).filter(lambda text: len(text.encode()) < 256)


def _decimals() -> st.SearchStrategy[Decimal]:
    return st.builds(
        lambda unscaled, scale: Decimal(unscaled).scaleb(-scale), st.integers(-(2**31), 2**31 - 1), st.integers(0, 255)
    )


def _not_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return True
    return False


SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**7), 2**7 - 1).map(fieldtable.Int8),
    st.integers(0, 2**8 - 1).map(fieldtable.UInt8),
    st.integers(-(2**15), 2**15 - 1).map(fieldtable.Int16),
    st.integers(0, 2**16 - 1).map(fieldtable.UInt16),
    st.integers(-(2**31), 2**31 - 1).map(fieldtable.Int32),
    st.integers(0, 2**32 - 1).map(fieldtable.UInt32),
    st.integers(-(2**63), 2**63 - 1).map(fieldtable.Int64L),
    st.integers(0, 2**64 - 1).map(fieldtable.Timestamp),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(fieldtable.Float32),
    _decimals(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.binary(max_size=40),
    st.binary(max_size=40).filter(_not_utf8).map(fieldtable.OctetString),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(short_strings(any_octets=True), inner, max_size=4),
    max_leaves=8,
)
TABLES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(short_strings(any_octets=True), VALUES, max_size=5)

PROPERTIES: st.SearchStrategy[Properties] = st.builds(
    Properties,
    **{name: st.none() | short_strings(any_octets=True) for name in Properties.__struct_fields__}
    | {
        "headers": st.none() | TABLES,
        "delivery_mode": st.none() | st.integers(0, 255),
        "priority": st.none() | st.integers(0, 255),
        "timestamp": st.none() | st.integers(0, 2**64 - 1).map(fieldtable.Timestamp),
    },
)

_BY_WIRE_TYPE: dict[WireType, st.SearchStrategy[Any]] = {
    WireType.BIT: st.booleans(),
    WireType.OCTET: st.integers(0, 2**8 - 1),
    WireType.SHORT: st.integers(0, 2**16 - 1),
    WireType.LONG: st.integers(0, 2**32 - 1),
    WireType.LONGLONG: st.integers(0, 2**64 - 1),
    WireType.LONG_STRING: st.binary(max_size=300),
    WireType.TABLE: TABLES,
}


def instances(method: type[Method]) -> st.SearchStrategy[Method]:
    """A method with any arguments."""
    by_type = _BY_WIRE_TYPE | {WireType.SHORT_STRING: short_strings(any_octets=method.has_content)}
    return st.builds(method, **{field.name: by_type[field.type] for field in method.layout if field.name})


METHOD_INSTANCES: st.SearchStrategy[Method] = st.sampled_from(list(METHODS.values())).flatmap(instances)


def fault_of(read: Callable[[], object]) -> ConnectionFault | None:
    """The fault that reading came to, None if it went well; everything else goes up."""
    try:
        read()
    except ConnectionFault as fault:
        return fault
    return None
