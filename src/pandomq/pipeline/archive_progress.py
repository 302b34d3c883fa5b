"""The progress of an archive in each stream: stored at the brokers under the archive's name, and checked for missing
offsets.

It is stored after a batch is in the lake, never before: a stream that waits for its archive removes messages up to that
offset (`x-retain-until-archived`).
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import NoSuchStream, PreconditionFailed
from pandomq.pipeline.lake_records import LakeFile

TIMEOUT_S: Final = 300.0
"""How long a failover may take."""


class ArchiveProgress:
    """The progress in one vhost."""

    def __init__(self, url: str, name: str) -> None:
        self._client = DataClient(url, timeout_s=TIMEOUT_S)
        self._name = name
        self._ends: dict[str, int] = {}
        self._untold: dict[str, str] = {}
        self.missing = 0
        """Offsets that were skipped: their messages had been removed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def begin(self, files: Iterable[LakeFile]) -> None:
        """Takes the files that are in the lake already."""
        for file in files:
            self._ends[file.stream] = max(self._ends.get(file.stream, 0), file.last_offset + 1)

    def archived(self, files: Iterable[LakeFile]) -> None:
        """To be called when these files are in the lake. Raises DataFailure if no broker stores the progress."""
        for stream, (first, end) in ranges_of(files).items():
            before = self._ends.get(stream, first)
            self.missing += max(0, first - before)
            self._ends[stream] = max(before, end)
            self._tell(stream, end)

    def _tell(self, stream: str, end: int) -> None:
        try:
            self._client.store_offset(stream, self._name, end)
        except NoSuchStream:
            # It was deleted in the meantime; the lake has its earlier messages.
            pass
        except PreconditionFailed as refusal:
            self._untold[stream] = refusal.text

    def facts(self) -> dict[str, object]:
        """The facts for a summary."""
        facts: dict[str, object] = {"stored as": self._name}
        if self.missing:
            facts["messages missing"] = self.missing
        if self._untold:
            facts["not stored"] = "; ".join(f"{stream}: {text}" for stream, text in sorted(self._untold.items()))
        return facts


def ranges_of(files: Iterable[LakeFile]) -> dict[str, tuple[int, int]]:
    """From the first offset to the one after the last, for each stream."""
    found: dict[str, tuple[int, int]] = {}
    for file in files:
        first, end = found.get(file.stream, (file.first_offset, 0))
        found[file.stream] = (min(first, file.first_offset), max(end, file.last_offset + 1))
    return found
