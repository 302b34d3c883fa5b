"""Results for files, saved in a directory, so that an interrupted audit continues where it was.

A file is identified by its broker, its number, its size and the time of its last change: a finished segment no longer
changes, even if it is renamed. Notes of another version of this code are not used.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from pandomq import __version__
from pandomq.pipeline.audit.segment_scan import SegmentContents, SegmentPlace

_decoder = msgspec.msgpack.Decoder(SegmentContents)


class Notes:
    def __init__(self, directory: Path | None) -> None:
        """Without a directory nothing is saved."""
        self._directory = directory
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def find(self, place: SegmentPlace) -> SegmentContents | None:
        path = self._path(place)
        if path is None:
            return None
        try:
            found = _decoder.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None
        return msgspec.structs.replace(found, place=place)

    def keep(self, found: SegmentContents) -> None:
        path = self._path(found.place)
        if path is None or found.fault:
            return
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_bytes(msgspec.msgpack.encode(found))
        unfinished.replace(path)

    def _path(self, place: SegmentPlace) -> Path | None:
        if self._directory is None:
            return None
        name = f"{place.broker}-{place.number}-{place.size_bytes}-{place.changed_ns}-{__version__}.survey"
        return self._directory / name
