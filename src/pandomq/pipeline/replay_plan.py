"""Which rows of a lake are published again, in which slices, and when each is due.

A plan is made once and kept in the lake (`_pandomq/replays/NAME.json`) with its progress: a replay that is started
again under its name continues with the same slices, whatever was archived in the meantime. A different request under
the same name is rejected: its rows would count as published.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pandomq.pipeline.lake import INNER, LakeFault, LakeFile

if TYPE_CHECKING:
    from pandomq.pipeline.lake import Lake

SLICE_ROWS: Final = 200_000
"""Without a pace."""
SLICE_S: Final = 2.0
"""With a pace, a slice has the rows that are due in this many seconds."""
SLICES_MAX: Final = 100_000
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
MICROS: Final = 1_000_000


@dataclass(frozen=True)
class Selection:
    """The rows to replay; bounds are from (inclusive) and to (exclusive)."""

    streams: str = ".*"
    first_offset: int | None = None
    end_offset: int | None = None
    first_us: int | None = None
    end_us: int | None = None
    where: str = ""
    """A condition in SQL on the rows."""

    def takes(self, file: LakeFile) -> bool:
        """Whether it may hold selected rows."""
        return (
            re.fullmatch(self.streams, file.stream) is not None
            and (self.first_offset is None or file.last_offset >= self.first_offset)
            and (self.end_offset is None or file.first_offset < self.end_offset)
            and (self.first_us is None or file.last_time_us >= self.first_us)
            and (self.end_us is None or file.first_time_us < self.end_us)
        )


@dataclass(frozen=True)
class Pace:
    """At most one of the two; without either as fast as possible."""

    rate: float = 0.0
    """Rows per second."""
    factor: float = 0.0
    """A factor of the original speed: 2 is twice as fast."""


@dataclass(frozen=True)
class ReplaySlice:
    due_s: float
    stream: str | None
    """None selects all streams."""
    first: int
    end: int
    """Offsets, if a stream is named; else times in microseconds."""

    def condition(self) -> str:
        """In SQL; the caller compares the stream's name."""
        column = "offset" if self.stream is not None else "unix_micros(time)"
        return f"{column} >= {self.first} AND {column} < {self.end}"


@dataclass
class ReplayPlan:
    name: str
    selection: Selection
    pace: Pace
    files: list[LakeFile]
    slices: list[ReplaySlice] = field(default_factory=list)
    done: int = 0
    """Published slices."""
    rows: int = 0
    """The number of their rows."""
    target: dict[str, str] = field(default_factory=dict)
    """Exchange or stream; empty in plans of version 0.1."""
    write_id: str = ""
    """The unique name of its writes, which no replay of another lake has either. Version 0.1 used the replay's name."""

    @property
    def progress(self) -> str:
        return f"{self.done} of {len(self.slices)} slices ({self.rows:,} rows) are published"


def draw_up(
    name: str, files: Sequence[LakeFile], selection: Selection, pace: Pace, target: Mapping[str, str] | None = None
) -> ReplayPlan:
    """`target`: the sink's options. Raises LakeFault if it would have too many slices, or the name is invalid."""
    if NAME.fullmatch(name) is None:
        raise LakeFault(f"'{name}' is not a valid name of a replay: use up to 64 letters, digits, - and _")
    plan = ReplayPlan(name, selection, pace, [file for file in files if selection.takes(file)])
    plan.target, plan.write_id = place_of(target or {}), f"replay-{uuid.uuid4().hex}"
    plan.slices = _by_time(plan) if pace.factor else _by_offset(plan)
    if len(plan.slices) > SLICES_MAX:
        raise LakeFault(
            f"the replay would have {len(plan.slices):,} slices, which is too many: choose a faster pace, or fewer rows"
        )
    return plan


def _by_offset(plan: ReplayPlan) -> list[ReplaySlice]:
    """Stream after stream."""
    rate, selection = plan.pace.rate, plan.selection
    step = max(1, round(rate * SLICE_S)) if rate else SLICE_ROWS
    slices: list[ReplaySlice] = []
    rows = 0
    for stream in sorted({file.stream for file in plan.files}):
        some = [file for file in plan.files if file.stream == stream]
        first = max(min(file.first_offset for file in some), selection.first_offset or 0)
        end = max(file.last_offset for file in some) + 1
        if selection.end_offset is not None:
            end = min(end, selection.end_offset)
        for at in range(first, end, step):
            slices.append(ReplaySlice(rows / rate if rate else 0.0, stream, at, min(at + step, end)))
            rows += min(step, end - at)
    return slices


def _by_time(plan: ReplayPlan) -> list[ReplaySlice]:
    """All streams together, in the order of arrival."""
    if not plan.files:
        return []
    selection, factor = plan.selection, plan.pace.factor
    first = max(min(file.first_time_us for file in plan.files), selection.first_us or 0)
    end = max(file.last_time_us for file in plan.files) + 1
    if selection.end_us is not None:
        end = min(end, selection.end_us)
    step = max(1, round(SLICE_S * factor * MICROS))
    return [
        ReplaySlice((at - first) / MICROS / factor, None, at, min(at + step, end)) for at in range(first, end, step)
    ]


# A request under the name of an earlier one.

_OPTIONS: Final = {
    "streams": "--streams",
    "first_offset": "--from-offset",
    "end_offset": "--to-offset",
    "first_us": "--from-time",
    "end_us": "--to-time",
    "where": "--where",
    "rate": "--rate",
    "factor": "--factor",
    "exchange": "--exchange",
    "stream": "--to-stream",
}


def place_of(target: Mapping[str, str]) -> dict[str, str]:
    """The target in a sink's options; the brokers are left out, since they can be named in several ways."""
    return {name: target[name] for name in ("exchange", "stream") if name in target}


def insist_on_same(plan: ReplayPlan, selection: Selection, pace: Pace, target: Mapping[str, str]) -> None:
    """Raises LakeFault if the request differs from that of the plan; the message names the difference, and the plan's
    progress."""
    first = {**asdict(plan.selection), **asdict(plan.pace), **plan.target}
    now = {**asdict(selection), **asdict(pace), **(place_of(target) if plan.target else {})}
    changed = [
        f"{option} {_said(first.get(name))}, now {_said(now.get(name))}"
        for name, option in _OPTIONS.items()
        if first.get(name) != now.get(name)
    ]
    if changed:
        raise LakeFault(
            f"replay {plan.name} has other settings: it was started with {'; '.join(changed)}; {plan.progress}. Use "
            "the same settings to resume it, or choose another --name"
        )


def _said(value: object) -> str:
    return "not given" if value is None or value in ("", 0.0) else str(value)


# A plan on disk.


def plan_path(lake: Lake, name: str) -> Path:
    return lake.directory / INNER / "replays" / f"{name}.json"


def save(lake: Lake, plan: ReplayPlan) -> None:
    path = plan_path(lake, plan.name)
    path.parent.mkdir(exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(plan)))
    draft.replace(path)


def load(lake: Lake, name: str) -> ReplayPlan | None:
    """None if there is no such replay. Raises LakeFault."""
    try:
        fields = json.loads(plan_path(lake, name).read_text())
        return ReplayPlan(
            fields["name"],
            Selection(**fields["selection"]),
            Pace(**fields["pace"]),
            [LakeFile(**file) for file in fields["files"]],
            [ReplaySlice(**one) for one in fields["slices"]],
            fields["done"],
            fields["rows"],
            fields.get("target", {}),
            fields.get("write_id") or fields["name"],
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LakeFault(f"cannot read the plan of replay {name}: {error}") from error
