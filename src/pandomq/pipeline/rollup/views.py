"""The data of the summary: the newest windows of each vhost, by name and by window."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pandomq.pipeline.rollup import measures
from pandomq.pipeline.rollup.batch_filter import RollupCounts, Story
from pandomq.pipeline.rollup.newest import Newest
from pandomq.pipeline.rollup.sums import MICROS

MILLIS: Final = 1000.0
DEFAULT_EXCHANGE: Final = "(default)"

Row = dict[str, Any]


class VhostStory(NamedTuple):
    """The data of one vhost."""

    vhost: str
    newest: Newest
    stories: list[Story]
    account: RollupCounts
    watermark_us: int


class NameView:
    """All measures of one name, or of one window."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.name: str = rows[0]["name"]
        self.within: str = rows[0]["within"]
        self._rows = {row["measure"]: row for row in rows}

    def messages(self, *wanted: str) -> int:
        return round(math.fsum(self._rows[measure]["messages"] for measure in wanted if measure in self._rows))

    def bytes(self, measure: str) -> int:
        return round(self._rows[measure]["bytes"]) if measure in self._rows else 0

    def at(self, measure: str, part: str, unit: float = 1.0) -> float | None:
        value = self._rows[measure][part] if measure in self._rows else None
        return None if value is None else round(value / unit, 3)

    def rate(self, measure: str) -> float:
        return round(self._rows[measure]["per_second"], 1) if measure in self._rows else 0.0


def names_of(vhost: VhostStory, subject: str) -> list[NameView]:
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in vhost.newest.totals:
        if row["subject"] == subject:
            found[row["name"], row["within"]].append(row)
    names = [NameView(rows) for rows in found.values()]
    return sorted(names, key=lambda one: (-one.messages(measures.PUBLISHED, measures.DELIVERED), one.name, one.within))


def windows_of(vhost: VhostStory) -> list[tuple[int, NameView]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in vhost.newest.series:
        found[row["start_us"]].append(row)
    return [(start_us, NameView(rows)) for start_us, rows in sorted(found.items())]


def all_stories(vhosts: Sequence[VhostStory]) -> list[Story]:
    """Each event once: brokers report it in every traced vhost."""
    return sorted({story for vhost in vhosts for story in vhost.stories})


def written(time_us: int) -> str:
    return f"{datetime.fromtimestamp(time_us / MICROS, UTC):%Y-%m-%d %H:%M:%S}"


def told(text: str) -> str:
    """The text of an event, an object with its name as `event`, in words."""
    try:
        facts = dict(json.loads(text))
    except (ValueError, TypeError):
        return text
    name = str(facts.pop("event", "")).replace("_", "-")
    return " ".join([name, *(f"{key}={value}" for key, value in facts.items())]).strip()
