"""A lake of Parquet files, and the record of which of them count.

    LAKE/vhost=…/stream=…/date=…/*.parquet     rows
    LAKE/_pandomq/records/00000012.json        one step: which files it added, and which it took away
    LAKE/_pandomq/staging/…                    files of a step that is not decided
    LAKE/_pandomq/checkpoint/…                 how far the archive has come; Spark's

A step is decided by its record, which appears under its name at once or not at all. Files that no record names are
what a crash left behind: nobody reads them, and the next step removes them. One process at a time writes to a lake.
It is on a file system that the driver and all executors see under the same path.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pyarrow import parquet

INNER: Final = "_pandomq"
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


class Lake:
    def __init__(self, directory: Path) -> None:
        """Raises LakeFault."""
        self.directory = directory
        self._records = directory / INNER / "records"
        self._read()

    def _read(self) -> None:
        self.records: list[Record] = []
        if not self._records.is_dir():
            if self.directory.is_dir() and any(self.directory.iterdir()):
                raise LakeFault(f"{self.directory} holds something else than a lake: name an empty or a new directory")
            return
        for path in sorted(self._records.glob("*.json")):
            self.records.append(_decode(path))

    @classmethod
    def existing(cls, directory: Path) -> Lake:
        """Raises LakeFault if there is none."""
        if not (directory / INNER / "records").is_dir():
            raise LakeFault(f"there is no lake in {directory}: `pandomq pipeline archive` makes one")
        return cls(directory)

    @property
    def checkpoint(self) -> Path:
        return self.directory / INNER / "checkpoint"

    @property
    def staging(self) -> Path:
        return self.directory / INNER / "staging"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Nobody else writes meanwhile. Raises LakeFault if somebody does."""
        self._records.mkdir(parents=True, exist_ok=True)
        with (self.directory / INNER / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LakeFault(f"another process writes to {self.directory}") from None
            self._read()
            self._remove_strays()
            yield

    def has_batch(self, batch: int) -> bool:
        return any(record.batch == batch for record in self.records)

    def files(self) -> list[LakeFile]:
        """Those that count, by stream and offset."""
        removed = {path for record in self.records for path in record.removes}
        found = [file for record in self.records for file in record.adds if file.path not in removed]
        return sorted(found, key=lambda file: (file.vhost, file.stream, file.first_offset))

    # Steps.

    def take_in(self, batch: int | None, removes: Iterable[LakeFile] = ()) -> Record:
        """Files in `staging` become part of the lake, in place of others: one step."""
        number = len(self.records)
        adds = []
        for count, staged in enumerate(sorted(self.staging.rglob("*.parquet"))):
            directory = self.directory / staged.parent.relative_to(self.staging)
            directory.mkdir(parents=True, exist_ok=True)
            file = directory / f"{number:08d}-{count}.parquet"
            _sync(staged)
            staged.replace(file)
            _sync(directory)
            adds.append(self._describe(file))
        record = Record(number, batch, tuple(adds), tuple(file.path for file in removes))
        self._write(record)
        self.records.append(record)
        shutil.rmtree(self.staging, ignore_errors=True)
        for path in record.removes:
            (self.directory / path).unlink(missing_ok=True)
        return record

    def _write(self, record: Record) -> None:
        path = self._records / f"{record.number:08d}.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({"version": VERSION} | asdict(record)))
        _sync(draft)
        draft.replace(path)
        _sync(self._records)

    def _remove_strays(self) -> None:
        known = {file.path for file in self.files()}
        shutil.rmtree(self.staging, ignore_errors=True)
        for path in self.directory.glob("vhost=*/stream=*/date=*/*"):
            if path.relative_to(self.directory).as_posix() not in known:
                path.unlink()

    def _describe(self, path: Path) -> LakeFile:
        facts = parquet.read_metadata(path)
        names = {facts.schema.column(number).path: number for number in range(facts.num_columns)}
        groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
        offsets = [group.column(names["offset"]).statistics for group in groups]
        times = [group.column(names["time"]).statistics for group in groups]
        return LakeFile(
            path.relative_to(self.directory).as_posix(),
            facts.num_rows,
            path.stat().st_size,
            min(one.min for one in offsets),
            max(one.max for one in offsets),
            min(_micros(one.min) for one in times),
            max(_micros(one.max) for one in times),
        )


def _decode(path: Path) -> Record:
    try:
        fields = json.loads(path.read_text())
        version = fields.pop("version")
        adds = tuple(LakeFile(**file) for file in fields.pop("adds"))
        removes = tuple(fields.pop("removes"))
        record = Record(adds=adds, removes=removes, **fields)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LakeFault(f"{path} cannot be read: {error}") from error
    if version != VERSION:
        raise LakeFault(f"{path} is of version {version}, which is not known here")
    return record


def _micros(time: object) -> int:
    """Of what Parquet's statistics say."""
    return int(time.timestamp() * 1_000_000) if hasattr(time, "timestamp") else int(str(time))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
