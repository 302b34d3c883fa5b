"""A lake of Parquet files, and the records of which files are part of it.

    LAKE/vhost=…/stream=…/date=…/*.parquet     rows
    LAKE/_pandomq/records/00000012.json        one step: which files it added, and which it removed
    LAKE/_pandomq/staging/…                    files of an undecided step, a directory for each process
    LAKE/_pandomq/checkpoint/…                 the progress of the archive; Spark's
    LAKE/_delta_log/…                          the same steps for others, if the lake is a Delta table

A step is decided by its record, which is created atomically. Files that no record names are left from a crash: they are
not read, and the next step removes them. When there are many records, one more replaces them with their result, and
they are deleted. One process at a time writes to a lake; executors of a killed one may continue for a while, in a
directory that is not read. The lake must have the same path for the driver and all executors.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pandomq.pipeline.delta_log import DIRECTORY as DELTA
from pandomq.pipeline.delta_log import DeltaLog
from pandomq.pipeline.lake_records import LakeFault, LakeFile, LakeRecord, decode, encode

__all__ = ["INNER", "Lake", "LakeFault", "LakeFile", "LakeRecord"]

INNER: Final = "_pandomq"
RECORDS_MAX: Final = 1000
"""More records are joined into one."""


class Lake:
    def __init__(self, directory: Path, *, delta: bool = False) -> None:
        """`delta`: it is a Delta table from now on; an existing Delta table stays one. Raises LakeFault."""
        self.directory = directory
        self._records = directory / INNER / "records"
        self.staging = directory / INNER / "staging" / uuid.uuid4().hex
        """The files of a step are written here before it is decided."""
        self._read()
        self.delta: DeltaLog | None = None
        if delta or (directory / DELTA).is_dir():
            self.delta = DeltaLog(directory)

    def _read(self) -> None:
        self.records: list[LakeRecord] = []
        if not self._records.is_dir():
            if self.directory.exists() and not self.directory.is_dir():
                raise LakeFault(f"{self.directory} is not a directory: choose another path for the lake")
            if self.directory.is_dir() and any(self.directory.iterdir()):
                raise LakeFault(f"{self.directory} is not a lake, but not empty: choose an empty or new directory")
            return
        for path in sorted(self._records.glob("*.json")):
            try:
                record = decode(path)
            except FileNotFoundError:
                # A writer has joined records in the meantime.
                return self._read()
            if record.base:
                self.records.clear()
            self.records.append(record)

    @classmethod
    def existing(cls, directory: Path) -> Lake:
        """Raises LakeFault if there is none."""
        if not (directory / INNER / "records").is_dir():
            raise LakeFault(f"{directory} contains no lake: create one with `pandomq pipeline archive`")
        return cls(directory)

    @property
    def checkpoint(self) -> Path:
        return self.directory / INNER / "checkpoint"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """No other process writes in the meantime. Raises LakeFault if one does."""
        try:
            self._records.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LakeFault(f"cannot create a lake in {self.directory}: {error.strerror}") from error
        with (self.directory / INNER / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LakeFault(f"another process writes to the lake {self.directory}: stop it first") from None
            self._read()
            self._follow()
            self._remove_strays()
            yield

    def record_of(self, batch: int) -> LakeRecord | None:
        """The record with this batch of the archive, or a later one; None if the batch is not in the lake."""
        known = (record for record in self.records if record.batch is not None and record.batch >= batch)
        return next(known, None)

    def files(self) -> list[LakeFile]:
        """The files of the lake, by stream and offset."""
        removed = {path for record in self.records for path in record.removes}
        found = [file for record in self.records for file in record.adds if file.path not in removed]
        return sorted(found, key=lambda file: (file.vhost, file.stream, file.first_offset))

    # Steps.

    def take_in(self, batch: int | None, removes: Iterable[LakeFile] = ()) -> LakeRecord:
        """Files in `staging` become part of the lake, and replace others: one step."""
        number = self._next_number
        adds = []
        for count, staged in enumerate(sorted(self.staging.rglob("*.parquet"))):
            directory = self.directory / staged.parent.relative_to(self.staging)
            directory.mkdir(parents=True, exist_ok=True)
            file = directory / f"{number:08d}-{count}.parquet"
            sync(staged)
            staged.replace(file)
            sync(directory)
            adds.append(self._describe(file))
        record = LakeRecord(number, batch, tuple(adds), tuple(file.path for file in removes))
        self._write(record)
        self.records.append(record)
        self._follow()
        shutil.rmtree(self.staging, ignore_errors=True)
        for path in record.removes:
            (self.directory / path).unlink(missing_ok=True)
        if len(self.records) > RECORDS_MAX:
            self._put_together()
        return record

    @property
    def _next_number(self) -> int:
        return self.records[-1].number + 1 if self.records else 0

    def _put_together(self) -> None:
        old = self.records
        batch = max((record.batch for record in old if record.batch is not None), default=None)
        base = LakeRecord(self._next_number, batch, tuple(self.files()), base=True)
        self._write(base)
        self.records = [base]
        for record in old:
            # If this is interrupted, readers begin with the last base.
            self._path_of(record).unlink(missing_ok=True)

    def _follow(self) -> None:
        if self.delta is not None:
            self.delta.follow(self.records, self.files)

    def _path_of(self, record: LakeRecord) -> Path:
        return self._records / f"{record.number:08d}.json"

    def _write(self, record: LakeRecord) -> None:
        path = self._path_of(record)
        draft = path.with_suffix(".draft")
        draft.write_text(encode(record))
        sync(draft)
        draft.replace(path)
        sync(self._records)

    def _remove_strays(self) -> None:
        known = {file.path for file in self.files()}
        shutil.rmtree(self.staging.parent, ignore_errors=True)
        for path in self.directory.glob("vhost=*/stream=*/date=*/*"):
            if path.relative_to(self.directory).as_posix() not in known:
                path.unlink()
        for path in self._records.glob("*.json"):
            if self.records and path.name < self._path_of(self.records[0]).name:
                # A record that was joined with others.
                path.unlink()

    def _describe(self, path: Path) -> LakeFile:
        from pyarrow import parquet

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


def _micros(time: object) -> int:
    """Microseconds from Parquet's statistics."""
    return int(time.timestamp() * 1_000_000) if hasattr(time, "timestamp") else int(str(time))


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
