"""Keys, derived from the sections: their names in all sources, and the conversion of a written value to its type."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from pandomq.cli.config import units
from pandomq.cli.config.section import Section
from pandomq.cli.config.sections import Configuration
from pandomq.runtime.listen import ListenAddress

VARIABLE_PREFIX: Final = "PANDOMQ_"
OFF: Final = "off"
"""The value in place of an address for a port that is not to be opened."""
NUMBER_MAX: Final = 2**53
"""Exact in every number format, and far beyond any machine."""
MASK: Final = "********"

Value = str | int | bool | Path | tuple[str, ...] | None

_FLAGS: Final = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
_PARSE_UNIT: Final = {"ms": units.parse_ms, "s": units.parse_s}
_FORMAT_UNIT: Final = {"bytes": units.format_bytes, "ms": units.format_ms, "s": units.format_s}


class Key(msgspec.Struct, frozen=True, kw_only=True):
    section: str
    """"node", "node.tls", …"""
    name: str
    type: Any
    """The type of its values, except None."""
    meta: Meta
    default: Value

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return VARIABLE_PREFIX + self.path.replace(".", "_").upper()

    @property
    def option(self) -> str | None:
        option: str | None = self._extra.get("option")
        return option

    @property
    def description(self) -> str:
        """In Markdown, with links as on docs/configuration.md."""
        return self.meta.description or ""

    @property
    def secret(self) -> bool:
        return bool(self._extra.get("secret"))

    @property
    def private(self) -> bool:
        return bool(self._extra.get("private"))

    @property
    def is_path(self) -> bool:
        return self.type is Path

    @property
    def unit(self) -> str | None:
        word = self.name.removesuffix("_max").removesuffix("_min").rpartition("_")[2]
        return word if self.type is int and word in _FORMAT_UNIT else None

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def default_text(self) -> str:
        """The default for the documentation, independent of this machine."""
        return self._extra.get("default") or self.show(self.default)

    @property
    def _extra(self) -> dict[str, Any]:
        return self.meta.extra or {}

    def parse(self, written: object) -> Value:
        """The value of the text in a file, a variable or an option. Raises ValueError with the reason."""
        if self.type is int:
            return self._bounded(self._parse_number(written))
        if self.type is bool:
            return _parse_flag(written)
        if self.type == tuple[str, ...]:
            return _parse_names(written)
        text = _parse_text(written)
        if self.choices and text not in self.choices:
            raise ValueError(f"'{text}' is unknown: expected one of {', '.join(self.choices)}")
        if self._extra.get("address") and text != OFF:
            return str(ListenAddress.parse(text))
        return Path(text) if self.is_path else text

    def show(self, value: Value) -> str:
        """The value for display: a secret is masked, a number is in its most readable unit."""
        if value is None:
            return ""
        if self.secret:
            return MASK
        if isinstance(value, tuple):
            return ", ".join(value)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int) and self.unit is not None:
            return _FORMAT_UNIT[self.unit](value)
        return str(value)

    def _parse_number(self, written: object) -> int:
        if isinstance(written, bool) or not isinstance(written, int | str):
            raise ValueError(f"expected a number, not {_described(written)}")
        if isinstance(written, int):
            return written
        if self.unit == "bytes":
            share = bool(self._extra.get("share_of_memory"))
            return units.parse_bytes(written, whole_bytes=_memory_bytes() if share else None)
        if self.unit is not None:
            return _PARSE_UNIT[self.unit](written)
        if not (written.isascii() and written.isdigit() and len(written) < 20):
            raise ValueError(f"'{written}' is not a number")
        return int(written)

    def _bounded(self, number: int) -> int:
        least = 0 if self.meta.ge is None else int(self.meta.ge)
        most = NUMBER_MAX if self.meta.le is None else int(self.meta.le)
        if number < least:
            raise ValueError(f"must be at least {self.show(least)}, not {self._shown(number)}")
        if number > most:
            raise ValueError(f"must be at most {self.show(most)}, not {self._shown(number)}")
        return number

    def _shown(self, number: int) -> str:
        return self.show(number) if number >= 0 else str(number)


@functools.cache
def all_keys() -> dict[str, Key]:
    """By path, in the order in which the sections list them."""
    return {key.path: key for key in _keys_of(Configuration, "")}


def _keys_of(section: type[Section], path: str) -> Iterator[Key]:
    hints = get_type_hints(section, include_extras=True)
    for field in msgspec.structs.fields(section):
        hint = hints[field.name]
        if isinstance(hint, type) and issubclass(hint, Section):
            yield from _keys_of(hint, f"{path}.{field.name}" if path else field.name)
            continue
        assert get_origin(hint) is Annotated, f"{section.__name__}.{field.name} needs a Meta that says what it is for"
        plain, meta = get_args(hint)
        has_default = field.default is not msgspec.NODEFAULT and "default" not in (meta.extra or {})
        default = field.default if has_default else None
        yield Key(section=path, name=field.name, type=_without_none(plain), meta=meta, default=default)


def _memory_bytes() -> int:
    # Imported here because it imports the whole broker, for which short commands should not wait.
    from pandomq.runtime.process import machine_memory_bytes

    return machine_memory_bytes()


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    (kept,) = (part for part in get_args(hint) if part is not types.NoneType)
    return kept


def _parse_text(written: object) -> str:
    if not isinstance(written, str):
        raise ValueError(f"expected a text, not {_described(written)}")
    if not written or "\0" in written:
        raise ValueError("expected a text that is not empty and contains no NUL character")
    return written


def _parse_flag(written: object) -> bool:
    if isinstance(written, bool):
        return written
    flag = _FLAGS.get(written.lower()) if isinstance(written, str) else None
    if flag is None:
        raise ValueError(f"expected true or false, not {_described(written)}")
    return flag


def _parse_names(written: object) -> tuple[str, ...]:
    """A list, or a text with commas between the names; an empty list is a value, too."""
    if isinstance(written, str):
        written = [name.strip() for name in written.split(",")]
    if not isinstance(written, list):
        raise ValueError(f"expected a list of texts, not {_described(written)}")
    return tuple(_parse_text(name) for name in written)


def _described(written: object) -> str:
    match written:
        case bool():
            return "true" if written else "false"
        case str():
            return f"'{written}'"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return str(written)
