"""The counts of a run, and its failure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from tests.fuzz.cases import Case


class FuzzFailure(AssertionError):
    """The error, its input, and its place in the run."""

    def __init__(self, reason: str, case: Case | None, number: int) -> None:
        super().__init__(reason, case, number)
        self.reason = reason
        self.case = case
        self.number = number

    def __str__(self) -> str:
        return f"{self.reason} (input {self.number}: {self.case})"


@dataclass
class Tally:
    """The events of an epoch, or of many."""

    inputs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    methods_seen: Counter[str] = field(default_factory=Counter)
    closes: Counter[str] = field(default_factory=Counter)
    bytes_in: int = 0
    bytes_out: int = 0
    slowest_ms: float = 0.0
    digest: bytes = b""
    """The hash of all output, in order: the same for the same seed, on either kernel."""

    def add(self, more: Tally) -> None:
        self.inputs += more.inputs
        self.kinds += more.kinds
        self.methods_seen += more.methods_seen
        self.closes += more.closes
        self.bytes_in += more.bytes_in
        self.bytes_out += more.bytes_out
        self.slowest_ms = max(self.slowest_ms, more.slowest_ms)
        self.digest = blake2b(self.digest + more.digest, digest_size=16).digest()

    def summary(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "kinds": dict(self.kinds),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "slowest_input_ms": round(self.slowest_ms, 1),
            "closes": dict(self.closes.most_common()),
            "methods_seen": dict(self.methods_seen.most_common()),
        }
