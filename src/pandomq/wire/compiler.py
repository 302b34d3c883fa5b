"""Compiles a reader and a writer for each method from its layout.

Interpreting a layout field by field would take several times as long, and in sixty functions written by hand a typing
error would be easy to miss. So each layout is compiled into one straight-line function at import. Fields of fixed size
that stand side by side are read and written by one struct.

A reader raises IndexError, struct.error or UnicodeDecodeError for malformed octets: `codec` turns these into faults.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from pandomq.fieldtable import decode_table, encode_table
from pandomq.methods import Field, Method, WireType

Reader = Callable[[bytes], Method]
"""From a complete method payload; the ids at its start are known already."""
Writer = Callable[[Any], bytes]
"""To a complete method payload, ids included."""

_FIXED: Final = {WireType.OCTET: "B", WireType.SHORT: "H", WireType.LONG: "I", WireType.LONGLONG: "Q"}
_BITS_PER_OCTET: Final = 8
_OCTETS: Final = tuple(bytes((value,)) for value in range(256))
_UINT32: Final = struct.Struct(">I")

_Group = list[Field]
"""Fields that are read or written together: a run of fixed size, with its bits, or one field of variable size."""


def compile_reader(method: type[Method]) -> Reader:
    """The reader of one method."""
    # Contents pass through unchecked: a routing key may be any octets. All other names must be UTF-8.
    decode = ".decode('utf-8', 'surrogateescape')" if method.has_content else ".decode()"
    scope = _scope(method)
    lines = ["def read(b):", " o = 4"]
    values: dict[str, str] = {}
    for number, group in enumerate(_groups(method.layout)):
        kind = group[0].type
        target = f"v{number}"
        if kind is WireType.SHORT_STRING:
            lines += [" s = o + 1", " o = s + b[o]", f" {target} = b[s:o]{decode}"]
        elif kind is WireType.LONG_STRING:
            lines += [" s = o + 4", " o = s + uint32(b, o)[0]", f" {target} = b[s:o]"]
        elif kind is WireType.TABLE:
            # A table that does not fit into its method is a malformed method, not a malformed table.
            lines += [" s = o", " o = s + 4 + uint32(b, s)[0]", " if o > len(b): raise IndexError"]
            lines += [f" {target} = decode_table(b, s)[0]"]
        else:
            layout, slots = _fixed_layout(group)
            scope[f"unpack{number}"] = layout.unpack_from
            lines += [f" {target} = unpack{number}(b, o)", f" o += {layout.size}"]
            values.update((name, f"{target}[{index}]" + _bit_test(bit)) for name, index, bit in slots)
            continue
        if group[0].name is not None:
            values[group[0].name] = target
    lines.append(" if o != len(b): raise IndexError")
    lines.append(f" return cls({', '.join(values[name] for name in method.__struct_fields__)})")
    reader: Reader = _built("read", lines, scope)
    return reader


def compile_writer(method: type[Method]) -> Writer:
    """The writer of one method."""
    scope = _scope(method)
    lines = ["def write(m):"]
    parts = ["ids"]
    for number, group in enumerate(_groups(method.layout)):
        field = group[0]
        value = f"m.{field.name}"
        if field.type is WireType.SHORT_STRING:
            if field.name is not None:
                lines.append(f" v{number} = {value}.encode('utf-8', 'surrogateescape')")
            parts += [r"b'\0'"] if field.name is None else [f"octets[len(v{number})]", f"v{number}"]
        elif field.type is WireType.LONG_STRING:
            parts += [r"b'\0\0\0\0'"] if field.name is None else [f"pack_uint32(len({value}))", value]
        elif field.type is WireType.TABLE:
            parts.append(f"encode_table({value})")
        else:
            layout, slots = _fixed_layout(group)
            scope[f"pack{number}"] = layout.pack
            parts.append(f"pack{number}({', '.join(_packed(layout, slots))})")
    lines.append(f" return b''.join(({', '.join(parts)},))")
    writer: Writer = _built("write", lines, scope)
    return writer


def _scope(method: type[Method]) -> dict[str, Any]:
    return {
        "cls": method,
        "ids": struct.pack(">HH", method.class_id, method.method_id),
        "octets": _OCTETS,
        "uint32": _UINT32.unpack_from,
        "pack_uint32": _UINT32.pack,
        "decode_table": decode_table,
        "encode_table": encode_table,
    }


def _built(name: str, lines: list[str], scope: dict[str, Any]) -> Any:
    exec("\n".join(lines), scope)
    return scope[name]


def _groups(layout: tuple[Field, ...]) -> Iterator[_Group]:
    run: _Group = []
    for field in layout:
        if field.type in _FIXED or field.type is WireType.BIT:
            run.append(field)
            continue
        if run:
            yield run
            run = []
        yield [field]
    if run:
        yield run


def _fixed_layout(group: _Group) -> tuple[struct.Struct, list[tuple[str, int, int | None]]]:
    # The struct of a run, and for each named field the struct's item it is in and its bit there.
    format_ = ">"
    slots: list[tuple[str, int, int | None]] = []
    bit = _BITS_PER_OCTET
    for field in group:
        if field.type is not WireType.BIT:
            format_ += _FIXED[field.type]
            bit = _BITS_PER_OCTET
        elif bit == _BITS_PER_OCTET:
            format_ += "B"
            bit = 0
        if field.name is not None:
            slots.append((field.name, len(format_) - 2, bit if field.type is WireType.BIT else None))
        if field.type is WireType.BIT:
            bit += 1
    return struct.Struct(format_), slots


def _bit_test(bit: int | None) -> str:
    return "" if bit is None else f" & {1 << bit} != 0"


def _packed(layout: struct.Struct, slots: list[tuple[str, int, int | None]]) -> list[str]:
    # One expression for each item of the struct; reserved ones stay zero.
    items: list[list[str]] = [[] for _ in layout.format[1:]]
    for name, index, bit in slots:
        items[index].append(f"m.{name}" if bit is None else f"({1 << bit} if m.{name} else 0)")
    return [" | ".join(item) or "0" for item in items]
