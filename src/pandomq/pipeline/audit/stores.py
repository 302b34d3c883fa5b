"""Lists the files of brokers' stores, by their directories, at this moment.

A running broker continues. Its later writes are not part of this audit; files that it puts aside are found under their
other names, and files that it deletes were either read before or are reported as gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from pandomq.broker.log.commands import Command, decode_command
from pandomq.broker.log.snapshot import BrokerSnapshotHead, CommandPart, read_parts
from pandomq.journal.chain import ChainPoints
from pandomq.journal.effects import Effect, FileName, Read
from pandomq.journal.hard_state import COPY_OFFSETS, StoreState, decode_copy
from pandomq.journal.limits import STATE_COPY_BYTES
from pandomq.journal.names import STATE, aside_number, retained_file, retained_number, segment_number, snapshot_index
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.snapshot import KIND_CHAIN, OWN_KINDS, BadSnapshot, read_pieces
from pandomq.journal.work import Work
from pandomq.pipeline.audit.segment_scan import SegmentPlace
from pandomq.replica.record import decode_record
from pandomq.runtime.disk.disk_tools import store_in

T = TypeVar("T")

_OUTLIVED: Final = re.compile(r"outlived-(\d+)-segment-(\d{12})\.log")
_CHUNK_BYTES: Final = 1024 * 1024
SET_ASIDE: Final = " (set aside)"
"""A suffix for the name of a broker: a store that it had before a forced promotion."""


class NoStore(Exception):
    """The directory holds no store that can be audited; the message is the reason."""


class StoreFiles(msgspec.Struct, frozen=True):
    directory: str
    broker: str
    cluster_id: str
    epoch: int
    voters: tuple[str, ...]
    """The newest set of members in the store; both sets during a change."""
    places: tuple[SegmentPlace, ...]
    asides: tuple[str, ...]
    """Files with entries that were cut off the log."""
    snapshots: tuple[str, ...]
    """Newest first."""
    excerpts: bool = False
    """Its log is that of a secondary, and cannot be compared."""


def list_stores(directories: list[Path]) -> list[StoreFiles]:
    """Raises NoStore, also if they are not of one cluster or one broker is named twice."""
    found = [files for directory in directories for files in list_store(directory)]
    clusters = sorted({files.cluster_id for files in found})
    if len(clusters) > 1:
        raise NoStore(f"the stores belong to different clusters: {', '.join(clusters)}. Audit one cluster at a time")
    names = [files.broker for files in found]
    for name in names:
        if names.count(name) > 1:
            raise NoStore(f"two of the stores belong to broker {name}: give one of them")
    return found


def list_store(directory: Path) -> Iterator[StoreFiles]:
    """The store in use, and those of the same broker that were set aside. Raises NoStore."""
    store = store_in(directory)
    if not store.is_dir():
        raise NoStore(f"{directory} is not a directory")
    state = _read_state(store)
    record = decode_record(state.hard.membership) if state.hard.membership else None
    membership = None if record is None else record.membership
    names = sorted(path.name for path in store.iterdir())
    yield StoreFiles(
        str(directory),
        state.node_name,
        state.cluster_id,
        state.hard.epoch,
        () if membership is None else tuple(sorted(membership.names)),
        tuple(_places(store, state.node_name, names)),
        tuple(str(store / name) for name in names if aside_number(name) is not None),
        tuple(str(store / name) for name in reversed(names) if snapshot_index(name) is not None),
        record is not None and record.excerpts,
    )
    outlived = [(name, found) for name in names if (found := _OUTLIVED.fullmatch(name)) is not None]
    if outlived:
        broker = f"{state.node_name}{SET_ASIDE}"
        places = tuple(_place(store, broker, name, name, int(found[2])) for name, found in outlived)
        # Its epoch does not matter: a later one has replaced it.
        yield StoreFiles(str(directory), broker, state.cluster_id, -1, (), places, (), ())


def _read_state(store: Path) -> StoreState:
    try:
        data = (store / STATE).read_bytes()
    except OSError as error:
        raise NoStore(
            f"{store} contains no store: {error.strerror} ({STATE}). Give the data directory of a broker"
        ) from error
    copies = [decode_copy(data[offset : offset + STATE_COPY_BYTES]) for offset in COPY_OFFSETS]
    good = [copy for copy in copies if copy is not None]
    if not good:
        raise NoStore(f"{store / STATE} is damaged: the broker of this store is not known")
    return max(good, key=lambda copy: copy[0])[1]


def _places(store: Path, broker: str, names: list[str]) -> Iterator[SegmentPlace]:
    for name in names:
        number = segment_number(name)
        if number is not None:
            yield _place(store, broker, name, retained_file(number), number)
            continue
        number = retained_number(name)
        if number is not None:
            yield _place(store, broker, name, name, number)


def _place(store: Path, broker: str, name: str, other: str, number: int) -> SegmentPlace:
    try:
        about = (store / name).stat()
        size_bytes, changed_ns = about.st_size, about.st_mtime_ns
    except FileNotFoundError:
        size_bytes = changed_ns = 0
    return SegmentPlace(broker, str(store / name), str(store / other), number, size_bytes, changed_ns)


def has_grown(files: StoreFiles) -> bool:
    """The log was written after its files were listed."""
    if files.broker.endswith(SET_ASIDE):
        return False
    store = store_in(Path(files.directory))
    known = {place.path: place for place in files.places}
    try:
        for path in store.iterdir():
            if segment_number(path.name) is None:
                continue
            about = path.stat()
            place = known.get(str(path))
            if place is None or (place.size_bytes, place.changed_ns) != (about.st_size, about.st_mtime_ns):
                return True
    except OSError:
        return True
    return False


# Snapshots.


def chain_points(path: Path) -> ChainPoints | None:
    """The points of the log before a snapshot; None if it cannot be read."""
    points: list[ChainPoints] = []

    def take(kind: int, data: bytes) -> bool:
        if kind == KIND_CHAIN:
            points.append(ChainPoints.decode(data))
        return not points

    return points[0] if _read(path, take) and points else None


def commands_in(path: Path) -> list[Command] | None:
    """The configuration in a snapshot; None if it cannot be read. The rest is not read."""
    commands: list[Command] = []
    waiting = bytearray()

    def take(kind: int, data: bytes) -> bool:
        if kind >= OWN_KINDS:
            return True
        waiting.extend(data)
        for part in read_parts(waiting):
            if isinstance(part, CommandPart):
                commands.append(decode_command(part.command))
            elif not isinstance(part, BrokerSnapshotHead):
                return False
        return True

    return commands if _read(path, take) else None


def _read(path: Path, take: Callable[[int, bytes], bool]) -> bool:
    try:
        with path.open("rb") as file:
            window = ReadWindow(FileName(path.name), path.stat().st_size, _CHUNK_BYTES)

            def answer(effect: Effect) -> bytes:
                assert isinstance(effect, Read)
                file.seek(effect.offset)
                return file.read(effect.length)

            _carry_out(read_pieces(window, take), answer)
    except (OSError, BadSnapshot, ValueError):
        return False
    return True


def _carry_out(work: Work[T], answer: Callable[[Effect], bytes]) -> T:
    """Runs work that only reads."""
    try:
        effects = next(work)
        while True:
            effects = work.send([answer(effect) for effect in effects])
    except StopIteration as end:
        value: T = end.value
        return value
