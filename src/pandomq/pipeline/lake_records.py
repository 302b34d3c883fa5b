"""The records of a lake's steps, and their form."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

VERSION: Final = 1


class LakeFault(Exception):
    """The directory is no lake, or cannot be written to now."""


@dataclass(frozen=True)
class LakeFile:
    path: str
    """Relative to the lake's directory."""
    rows: int
    bytes: int
    first_offset: int
    last_offset: int
    first_time_us: int
    last_time_us: int

    def _part(self, name: str) -> str:
        parts = (part.partition("=") for part in Path(self.path).parts)
        return unquote(next(value for key, _, value in parts if key == name))

    @property
    def vhost(self) -> str:
        return self._part("vhost")

    @property
    def stream(self) -> str:
        return self._part("stream")

    @property
    def date(self) -> str:
        return self._part("date")


@dataclass(frozen=True)
class LakeRecord:
    number: int
    batch: int | None
    """Of the archive; None for a compaction."""
    adds: tuple[LakeFile, ...]
    removes: tuple[str, ...] = ()
    base: bool = False
    """Whether the record changes nothing, and contains the result of all records before it."""


def encode(record: LakeRecord) -> str:
    return json.dumps({"version": VERSION} | asdict(record))


def decode(path: Path) -> LakeRecord:
    """Raises LakeFault, and FileNotFoundError."""
    text = path.read_bytes()
    try:
        fields = json.loads(text)
        version = fields.pop("version")
        adds = tuple(LakeFile(**file) for file in fields.pop("adds"))
        removes = tuple(fields.pop("removes"))
        record = LakeRecord(adds=adds, removes=removes, **fields)
    except (ValueError, TypeError, KeyError) as error:
        raise LakeFault(f"cannot read {path}: {error}") from error
    if version != VERSION:
        raise LakeFault(f"{path} has the unknown version {version}: use the version of PandoMQ that wrote it")
    return record
