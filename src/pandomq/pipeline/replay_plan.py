"""Which rows of a lake are published again, in which slices, and when each is due.

A plan is drawn up once and kept in the lake (`_pandomq/replays/NAME.json`) with how far it has come: a replay that is
begun again under its name goes on with the same slices, whatever was archived meanwhile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pandomq.pipeline.lake import INNER, LakeFault, LakeFile

if TYPE_CHECKING:
    from pandomq.pipeline.lake import Lake

SLICE_ROWS: Final = 200_000
"""Without a pace."""
SLICE_S: Final = 2.0
"""With one, a slice is what is due in so many seconds."""
SLICES_MAX: Final = 100_000
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
MICROS: Final = 1_000_000


@dataclass(frozen=True)
class Selection:
    """What is replayed; bounds are from (inclusive) and to (exclusive)."""

    streams: str = ".*"
    first_offset: int | None = None
    end_offset: int | None = None
    first_us: int | None = None
    end_us: int | None = None
    where: str = ""
    """A condition in SQL on the rows."""

    def takes(self, file: LakeFile) -> bool:
        """Whether it may hold rows that are meant."""
        return (
            re.fullmatch(self.streams, file.stream) is not None
            and (self.first_offset is None or file.last_offset >= self.first_offset)
            and (self.end_offset is None or file.first_offset < self.end_offset)
            and (self.first_us is None or file.last_time_us >= self.first_us)
            and (self.end_us is None or file.first_time_us < self.end_us)
        )


@dataclass(frozen=True)
class Pace:
    """At most one of the two; without either as fast as it goes."""

    rate: float = 0.0
    """Rows a second."""
    factor: float = 0.0
    """Of the original spacing: 2 is twice as fast."""


@dataclass(frozen=True)
class Slice:
    due_s: float
    stream: str | None
    """All of them if there is none."""
    first: int
    end: int
    """Offsets, if a stream is named; else times in microseconds."""

    def condition(self) -> str:
        """In SQL; the stream's name is compared by whoever has it."""
        column = "offset" if self.stream is not None else "unix_micros(time)"
        return f"{column} >= {self.first} AND {column} < {self.end}"


@dataclass
class Plan:
    name: str
    selection: Selection
    pace: Pace
    files: list[LakeFile]
    slices: list[Slice] = field(default_factory=list)
    done: int = 0
    """Slices that are published."""
    rows: int = 0
    """That they had."""


def draw_up(name: str, files: Sequence[LakeFile], selection: Selection, pace: Pace) -> Plan:
    """Raises LakeFault if it would have too many slices, or the name is none."""
    if NAME.fullmatch(name) is None:
        raise LakeFault(f"'{name}' cannot name a replay: up to 64 letters, digits, - and _ can")
    plan = Plan(name, selection, pace, [file for file in files if selection.takes(file)])
    plan.slices = _by_time(plan) if pace.factor else _by_offset(plan)
    if len(plan.slices) > SLICES_MAX:
        raise LakeFault(f"{len(plan.slices):,} slices are too many: choose a faster pace, or less of the lake")
    return plan


def _by_offset(plan: Plan) -> list[Slice]:
    """Stream after stream."""
    rate, selection = plan.pace.rate, plan.selection
    step = max(1, round(rate * SLICE_S)) if rate else SLICE_ROWS
    slices: list[Slice] = []
    rows = 0
    for stream in sorted({file.stream for file in plan.files}):
        some = [file for file in plan.files if file.stream == stream]
        first = max(min(file.first_offset for file in some), selection.first_offset or 0)
        end = max(file.last_offset for file in some) + 1
        if selection.end_offset is not None:
            end = min(end, selection.end_offset)
        for at in range(first, end, step):
            slices.append(Slice(rows / rate if rate else 0.0, stream, at, min(at + step, end)))
            rows += min(step, end - at)
    return slices


def _by_time(plan: Plan) -> list[Slice]:
    """All streams together, as they came."""
    if not plan.files:
        return []
    selection, factor = plan.selection, plan.pace.factor
    first = max(min(file.first_time_us for file in plan.files), selection.first_us or 0)
    end = max(file.last_time_us for file in plan.files) + 1
    if selection.end_us is not None:
        end = min(end, selection.end_us)
    step = max(1, round(SLICE_S * factor * MICROS))
    return [Slice((at - first) / MICROS / factor, None, at, min(at + step, end)) for at in range(first, end, step)]


# A plan on disk.


def plan_path(lake: Lake, name: str) -> Path:
    return lake.directory / INNER / "replays" / f"{name}.json"


def save(lake: Lake, plan: Plan) -> None:
    path = plan_path(lake, plan.name)
    path.parent.mkdir(exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(plan)))
    draft.replace(path)


def load(lake: Lake, name: str) -> Plan | None:
    """None if there is no such replay. Raises LakeFault."""
    try:
        fields = json.loads(plan_path(lake, name).read_text())
        return Plan(
            fields["name"],
            Selection(**fields["selection"]),
            Pace(**fields["pace"]),
            [LakeFile(**file) for file in fields["files"]],
            [Slice(**one) for one in fields["slices"]],
            fields["done"],
            fields["rows"],
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LakeFault(f"the plan of replay {name} cannot be read: {error}") from error
