"""The reasons why a store cannot be used, with instructions for the operator.

Each of them ends the broker: the journal raises it once, and raises it again on every later call. Nothing is confirmed
after it.
"""

import errno

from pandomq.errors import NodeFault
from pandomq.journal.effects import DiskError, FileName

INTERNAL_ERROR = 541


class StoreFault(NodeFault):
    """A fault after which this broker cannot continue with its store."""

    __slots__ = ("file", "offset")

    def __init__(self, text: str, file: FileName | None = None, offset: int | None = None) -> None:
        super().__init__(INTERNAL_ERROR, text)
        self.file = file
        self.offset = offset

    def __str__(self) -> str:
        return self.reply_text


class DiskFault(StoreFault):
    """A write, a sync or a needed read failed. The content of the disk is unknown until it is read again."""


class DiskFullFault(DiskFault):
    pass


class ReadOnlyFault(DiskFault):
    pass


class CorruptFault(StoreFault):
    """Data on disk is not what was written."""


class VersionFault(StoreFault):
    pass


class ForeignFault(StoreFault):
    """The store belongs to another cluster or another broker."""


class InUseFault(StoreFault):
    pass


def disk_fault(error: DiskError, doing: str, file: FileName | None) -> DiskFault:
    place = "" if file is None else f" {file}"
    what = f"cannot {doing}{place}: {error.text}"
    if error.number in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullFault(
            f"{what}. Free some space on the disk and start the broker again; confirmed messages are not lost.", file
        )
    if error.number in (errno.EROFS, errno.EACCES, errno.EPERM):
        return ReadOnlyFault(f"{what}. The broker must be able to write to its data directory.", file)
    return DiskFault(f"{what}. Check the disk before you start the broker again.", file)


def corrupt(file: FileName, offset: int, what: str) -> CorruptFault:
    return CorruptFault(
        (
            f"{file} is corrupt at offset {offset}: {what}. `pandomq store verify` lists all damage; `pandomq store "
            "repair` cuts the log there and keeps the cut part in a side file."
        ),
        file,
        offset,
    )


def damaged_page(file: FileName, offset: int) -> CorruptFault:
    return CorruptFault(
        (
            f"{file} is corrupt at offset {offset}: a page of messages is damaged. `pandomq store verify` lists all "
            "damage; `pandomq store repair` keeps the damaged page in a side file, so that the broker can start "
            "without its messages."
        ),
        file,
        offset,
    )


def missing(what: str) -> CorruptFault:
    return CorruptFault(f"{what}. Restore the file from a backup, or the whole store from another broker.")


def unknown_version(file: FileName, version: int, known: int) -> VersionFault:
    return VersionFault(
        (
            f"{file} has format version {version}; this broker supports versions up to {known}. Start the newer "
            "version of the broker that wrote it."
        ),
        file,
        0,
    )


def foreign_cluster(file: FileName, found: str, expected: str) -> ForeignFault:
    return ForeignFault(
        f"{file} belongs to cluster {found}, not to {expected}. Give the broker a data directory of its own cluster.",
        file,
        0,
    )


def foreign_node(found: str, expected: str) -> ForeignFault:
    return ForeignFault(
        f"the store belongs to broker {found!r}, but this broker is {expected!r}. Start it under its old name, or give "
        "it another data directory."
    )


def in_use(directory: str, holder: str) -> InUseFault:
    return InUseFault(f"{directory} is in use by {holder}. Stop that process first, or choose another data directory.")
