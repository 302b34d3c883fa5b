"""Finished worlds of a campaign, a line of JSON each: an interrupted campaign continues with the others.

The first line identifies the campaign: its worlds, and the version that ran them. A last line without its end is
ignored.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from pandomq.sim.campaigns.campaign import Job
from pandomq.sim.campaigns.outcome import WorldOutcome


class WorldResult(msgspec.Struct, frozen=True):
    """The result of one world."""

    outcome: WorldOutcome
    taken_ms: int
    version: str
    """The version of the code that ran it, and the kernel."""


class OtherCampaign(Exception):
    """The notes are those of another campaign, or invalid; the message is the reason."""


class _Head(msgspec.Struct, frozen=True):
    job: Job
    version: str


class SeedNotes:
    def __init__(self, path: Path | None, job: Job, version: str) -> None:
        """Without a path nothing is saved. Raises OtherCampaign, OSError."""
        self.worlds: dict[int, WorldResult] = {}
        """Earlier results by seed."""
        self._file = -1
        if path is None:
            return
        head = _Head(msgspec.structs.replace(job, seed=0), version)
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        self._take(path, head, lines)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.truncate(self._file, sum(map(len, lines)))
        os.lseek(self._file, 0, os.SEEK_END)
        if not lines:
            os.write(self._file, msgspec.json.encode(head) + b"\n")

    def _take(self, path: Path, head: _Head, lines: list[bytes]) -> None:
        try:
            found = [msgspec.json.decode(line, type=WorldResult) for line in lines[1:]]
            before = msgspec.json.decode(lines[0], type=_Head) if lines else head
        except msgspec.MsgspecError as error:
            raise OtherCampaign(f"{path} is not a progress file of a campaign: {error}") from error
        if before != head:
            raise OtherCampaign(f"{path} belongs to the campaign {before}, but this one is {head}: choose another file")
        self.worlds = {world.outcome.seed: world for world in found}

    def keep(self, world: WorldResult) -> None:
        if self._file >= 0:
            os.write(self._file, msgspec.json.encode(world) + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
