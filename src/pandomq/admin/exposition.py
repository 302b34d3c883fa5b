"""Prometheus' text format: families of samples, each with its help and type before it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pandomq.admin.limits import SLICE_ROWS

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
GAUGE: Final = "gauge"
COUNTER: Final = "counter"


class Exposition:
    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, name: str, kind: str, text: str, value: int | float, labels: Mapping[str, str] | None = None) -> None:
        self._begin(name, kind, text)
        self._lines.append(f"{name}{_labels(labels or {})} {value}")

    def add_all(
        self, name: str, kind: str, text: str, samples: Sequence[tuple[Mapping[str, str], int | float]]
    ) -> None:
        """A few samples; without any the family is left out."""
        if samples:
            self._begin(name, kind, text)
            self._lines += [f"{name}{_labels(labels)} {value}" for labels, value in samples]

    async def add_slices(
        self, name: str, kind: str, text: str, samples: Iterable[tuple[Mapping[str, str], int | float]]
    ) -> None:
        """Adds many samples, like `add_all`, with turns of the loop in between."""
        self._begin(name, kind, text)
        for count, (labels, value) in enumerate(samples, 1):
            self._lines.append(f"{name}{_labels(labels)} {value}")
            if count % SLICE_ROWS == 0:
                await asyncio.sleep(0)

    def encode(self) -> bytes:
        return ("\n".join(self._lines) + "\n").encode()

    def _begin(self, name: str, kind: str, text: str) -> None:
        self._lines.append(f"# HELP {name} {text}")
        self._lines.append(f"# TYPE {name} {kind}")


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
