"""A lake as a Delta table: copies its records, one by one, to the table's own log.

The lake's record decides; the table follows. Each record becomes one transaction of the table, which contains the
record's number (the version of application `pandomq`): so none is there twice, and the next writer adds one that is
missing after a crash. No other program may write to the table.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pandomq.pipeline.lake_records import LakeFault, LakeFile, LakeRecord

if TYPE_CHECKING:
    import pyarrow
    from deltalake import DeltaTable

DIRECTORY: Final = "_delta_log"
APPLICATION: Final = "pandomq"
PARTITIONS: Final = ["vhost", "stream", "date"]


class DeltaLog:
    def __init__(self, directory: Path) -> None:
        """Raises LakeFault if the package for it is missing."""
        if importlib.util.find_spec("deltalake") is None:
            raise LakeFault(f"a Delta table in {directory} needs the Delta library: pip install 'pandomq[delta]'")
        self._directory = directory
        self._table: DeltaTable | None = None

    @property
    def version(self) -> int | None:
        """The version of the table; None while there is none."""
        table = self._open()
        return None if table is None else table.version()

    def follow(self, records: Sequence[LakeRecord], files: Callable[[], Sequence[LakeFile]]) -> None:
        """Adds the records that the table does not have; `files` returns the files after all records."""
        table = self._open()
        if table is None:
            found = files()
            if found:
                self._create(found, records[-1].number)
            return
        followed = table.transaction_version(APPLICATION)
        if followed is None:
            raise LakeFault(f"{self._directory} has a Delta log of another lake: choose another directory")
        for record in records:
            if record.number > followed and not record.base and (record.adds or record.removes):
                self._commit(table, record)

    def _open(self) -> DeltaTable | None:
        from deltalake import DeltaTable

        if self._table is None and (self._directory / DIRECTORY).is_dir():
            self._table = DeltaTable(self._directory)
        return self._table

    def _create(self, files: Sequence[LakeFile], number: int) -> None:
        from deltalake import Schema
        from deltalake.transaction import create_table_with_add_actions

        create_table_with_add_actions(
            str(self._directory),
            Schema.from_arrow(self._schema(files[0])),
            [_addition(file, changes=True) for file in files],
            partition_by=PARTITIONS,
            name="pandomq",
            description="Messages of PandoMQ streams",
            commit_properties=_properties(number),
        )

    def _commit(self, table: DeltaTable, record: LakeRecord) -> None:
        # A compaction does not change the rows.
        changes = not record.removes
        actions: list[Any] = [_addition(file, changes=changes) for file in record.adds]
        actions += [_removal(path) for path in record.removes]
        table.create_write_transaction(
            actions, "append", table.schema(), PARTITIONS, commit_properties=_properties(record.number)
        )
        table.update_incremental()

    def _schema(self, file: LakeFile) -> pyarrow.Schema:
        import pyarrow
        from pyarrow import parquet

        fields = parquet.read_schema(self._directory / file.path).remove_metadata()
        for name in PARTITIONS:
            fields = fields.append(pyarrow.field(name, pyarrow.date32() if name == "date" else pyarrow.string()))
        return fields


def _properties(number: int) -> Any:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(APPLICATION, number)])


def _addition(file: LakeFile, *, changes: bool) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(file.path, file.bytes, _partition(file), file.last_time_us // 1000, changes, _statistics(file))


def _removal(path: str) -> Any:
    from deltalake.transaction import RemoveAction

    file = LakeFile(path, 0, 0, 0, 0, 0, 0)
    return RemoveAction(path, False, 0, None, _partition(file))


def _partition(file: LakeFile) -> dict[str, str | None]:
    return {"vhost": file.vhost, "stream": file.stream, "date": file.date}


def _statistics(file: LakeFile) -> str:
    """Readers skip files by these; times are cut to milliseconds there, so the last one is rounded up."""
    least = {"offset": file.first_offset, "time": _milliseconds(file.first_time_us)}
    most = {"offset": file.last_offset, "time": _milliseconds(file.last_time_us + 1000)}
    return json.dumps({"numRecords": file.rows, "minValues": least, "maxValues": most})


def _milliseconds(time_us: int) -> str:
    return datetime.fromtimestamp(time_us // 1000 / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
