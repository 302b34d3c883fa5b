"""What a step did to a lake, and how that is written down."""

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
    """From the lake's directory on."""
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
class Record:
    number: int
    batch: int | None
    """Of the archive; None for a compaction."""
    adds: tuple[LakeFile, ...]
    removes: tuple[str, ...] = ()
    base: bool = False
    """It changes nothing, and says what all records before it come to."""


def encode(record: Record) -> str:
    return json.dumps({"version": VERSION} | asdict(record))


def decode(path: Path) -> Record:
    """Raises LakeFault, and FileNotFoundError."""
    text = path.read_bytes()
    try:
        fields = json.loads(text)
        version = fields.pop("version")
        adds = tuple(LakeFile(**file) for file in fields.pop("adds"))
        removes = tuple(fields.pop("removes"))
        record = Record(adds=adds, removes=removes, **fields)
    except (ValueError, TypeError, KeyError) as error:
        raise LakeFault(f"{path} cannot be read: {error}") from error
    if version != VERSION:
        raise LakeFault(f"{path} is of version {version}, which is not known here")
    return record
