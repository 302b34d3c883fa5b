"""The sources of values: the file, the environment and the options, each as values by key.

A source returns parsed values, and problems instead of exceptions, so that a user sees all of them at once. An unknown
key is a problem, and never ignored.
"""

from __future__ import annotations

import difflib
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from pandomq.cli.config.keys import VARIABLE_PREFIX, Key, Value, all_keys

FILE_BYTES_MAX: Final = 1024 * 1024
SECRET_BYTES_MAX: Final = 64 * 1024
_OPEN_TO_EVERYBODY: Final = stat.S_IRWXO

# Kubernetes passes services to a pod in such variables; a service may have our name.
_FOREIGN_VARIABLE: Final = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_[0-9]+_(TCP|UDP)(_.*)?)")


class Origin(msgspec.Struct, frozen=True):
    kind: str
    """option, environment, file or default."""
    where: str
    """The option, the variable, or the file; empty for a default."""

    def __str__(self) -> str:
        return self.where or self.kind


DEFAULT: Final = Origin("default", "")


class Given(msgspec.Struct, frozen=True):
    value: Value
    origin: Origin


class ConfigSource(msgspec.Struct):
    given: dict[str, Given] = {}
    problems: list[str] = []

    def take(self, key: Key, written: object, origin: Origin, place: str) -> None:
        try:
            self.given[key.path] = Given(key.parse(written), origin)
        except ValueError as error:
            self.problems.append(f"{place}: {error}")

    def take_secret_file(self, key: Key, path: Path, origin: Origin, place: str) -> None:
        if key.path in self.given:
            self.problems.append(f"{place}: {key.path} is set as well: keep only one of the two")
            return
        try:
            if key.private:
                _refuse_open_file(path)
            self.take(key, read_secret(path), origin, place)
        except ValueError as error:
            self.problems.append(f"{place}: {error}")


def from_options(options: Mapping[str, object]) -> ConfigSource:
    """Options by the path of their key; None stands for one that was not given."""
    source = ConfigSource()
    for path, written in options.items():
        key = all_keys()[path]
        assert key.option is not None, f"{path} has no option"
        if written is not None:
            source.take(key, written, Origin("option", key.option), key.option)
    return source


def from_environment(environment: Mapping[str, str]) -> ConfigSource:
    """An empty variable counts as none."""
    source = ConfigSource()
    keys = {key.variable: key for key in all_keys().values()}
    secrets = {f"{variable}_FILE": key for variable, key in keys.items() if key.secret}
    written = {name: text for name, text in environment.items() if text and _is_ours(name)}
    for variable, text in written.items():
        if variable in keys:
            source.take(keys[variable], text, Origin("environment", variable), variable)
        elif variable not in secrets:
            known = [name for name in (*keys, *secrets) if name.split("_")[1] == variable.split("_")[1]]
            source.problems.append(f"{variable} in the environment is not a key{_meant(variable, known)}")
    for variable in secrets.keys() & written.keys():
        path = Path(written[variable])
        source.take_secret_file(secrets[variable], path, Origin("environment", variable), variable)
    return source


def from_file(path: Path) -> ConfigSource:
    """Paths in the file are relative to its directory."""
    source = ConfigSource()
    try:
        tables = tomllib.loads(_read(path, FILE_BYTES_MAX).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        source.problems.append(f"{path}: {error}")
        return source
    except ValueError as error:
        source.problems.append(str(error))
        return source
    _take_table(source, path, "", tables)
    return source


def read_secret(path: Path) -> str:
    """A file's text without the line ends at its end. Raises ValueError."""
    try:
        return _read(path, SECRET_BYTES_MAX).decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not valid UTF-8") from None


def _refuse_open_file(path: Path) -> None:
    """Raises ValueError. A group may read it: container systems give secrets to a container's user this way."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    if mode & _OPEN_TO_EVERYBODY:
        raise ValueError(f"{path} can be read or changed by all users of this machine: run chmod 600 {path}")


def _take_table(source: ConfigSource, file: Path, section: str, table: dict[str, object]) -> None:
    keys = {key.name: key for key in all_keys().values() if key.section == section}
    secret_files = {f"{name}_file": key for name, key in keys.items() if key.secret}
    sections = sorted(set(_sections_below(section)))
    place = f"{file}: [{section}] " if section else f"{file}: "
    for name, written in table.items():
        inner = f"{section}.{name}" if section else name
        if name in keys:
            if keys[name].is_path and isinstance(written, str) and written:
                written = str(file.parent / written)
            source.take(keys[name], written, Origin("file", str(file)), f"{place}{name}")
        elif name in sections and isinstance(written, dict):
            _take_table(source, file, inner, written)
        elif name in sections:
            source.problems.append(f"{place}{name} is a section, not a value: write its keys below [{inner}]")
        elif name not in secret_files:
            kind = "section" if isinstance(written, dict) else "key"
            source.problems.append(f"{place}{name} is not a {kind}{_meant(name, [*keys, *secret_files, *sections])}")
    for name in secret_files.keys() & table.keys():
        written = table[name]
        if isinstance(written, str) and written:
            secret = file.parent / written
            source.take_secret_file(secret_files[name], secret, Origin("file", str(file)), f"{place}{name}")
        else:
            source.problems.append(f"{place}{name}: expected the path of a file")


def _sections_below(section: str) -> Iterator[str]:
    """The names of the sections directly below one."""
    prefix = f"{section}." if section else ""
    for key in all_keys().values():
        if key.section.startswith(prefix):
            name = key.section.removeprefix(prefix).partition(".")[0]
            if name:
                yield name


def _is_ours(variable: str) -> bool:
    """Whether it should be a key: our other variables (PANDOMQ_PLAIN, PANDOMQ_URL) name no section."""
    sections = {key.section.partition(".")[0].upper() for key in all_keys().values()}
    claims = variable.startswith(tuple(f"{VARIABLE_PREFIX}{section}_" for section in sections))
    return claims and _FOREIGN_VARIABLE.fullmatch(variable) is None


def _meant(name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    return f"{f': did you mean {nearest[0]}?' if nearest else '.'} Known: {', '.join(known)}"


def _read(path: Path, bytes_max: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    if len(content) > bytes_max:
        raise ValueError(f"{path} is larger than {bytes_max} bytes")
    return content
