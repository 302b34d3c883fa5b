"""What was found of files, noted in a directory, so that an audit that was broken off goes on where it was.

A file is known by its broker, its number, its size and the time of its last change: a segment that is finished changes
no more, whatever it is called. Notes of another version of this code are not used.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from pandomq import __version__
from pandomq.pipeline.audit.survey import SegmentPlace, Surveyed

_decoder = msgspec.msgpack.Decoder(Surveyed)


class Notes:
    def __init__(self, directory: Path | None) -> None:
        """Without a directory nothing is noted."""
        self._directory = directory
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def find(self, place: SegmentPlace) -> Surveyed | None:
        path = self._path(place)
        if path is None:
            return None
        try:
            found = _decoder.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None
        return msgspec.structs.replace(found, place=place)

    def keep(self, found: Surveyed) -> None:
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
