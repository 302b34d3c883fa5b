"""The file of campaigns has one line of JSON for each run of new seeds. This module also counts the worlds that have
run on one state of the code.

A line names the code that ran by a hash. The hash covers what a simulated world runs, the simulator included, and no
comments or docstrings. So runs of several days add up as long as the code is the same.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

import pandomq

SIMULATED: Final = ("broker", "cluster", "journal", "kernel", "methods", "node", "replica", "sim", "wire")
"""The packages whose code simulated worlds run, beside the modules at the top of the package."""
COMPILED: Final = (".pyx", ".pxi", ".pxd")
CODE_BYTES: Final = 8


class CampaignRun(msgspec.Struct, omit_defaults=True):
    """One line of the file."""

    date: str
    version: str
    kernel: str
    world: str
    """`broker`, or `log` for worlds of the replicated log alone."""
    nodes: int
    """The number of brokers in each world; 0 if the seed chose it."""
    first_seed: int
    schedules: int
    seconds: int
    broken: dict[str, str]
    """The violated guarantee, by seed. Always written, because an empty one is the result that counts."""
    shrunk: dict[str, str] = {}
    code: str = ""
    """The hash of the code; empty in lines that are older than the hash."""
    by_nodes: dict[str, int] = {}
    """The number of worlds by their number of brokers."""


class Total(msgspec.Struct):
    """The worlds that have run on one state of the code."""

    worlds: Counter[str]
    """`one broker`, `several brokers` and `logs`."""
    kernels: set[str]
    broken: list[str]
    """Seeds."""

    def text(self) -> str:
        counts = ", ".join(f"{self.worlds[kind]:,} of {kind}" for kind in ("several brokers", "one broker", "logs"))
        kernels = " and ".join(sorted(self.kernels))
        broken = f"broken: {', '.join(self.broken)}" if self.broken else "none broken"
        return f"worlds on this state of the code so far, {kernels} kernel: {counts}; {broken}"


def code_hash(root: Path | None = None) -> str:
    """Identifies the code of simulated worlds. Comments, docstrings and the layout of Python files do not count."""
    root = Path(pandomq.__file__).parent if root is None else root
    digest = blake2b(digest_size=CODE_BYTES)
    for file in sorted(_sources(root)):
        text = file.read_text()
        digest.update(f"{file.relative_to(root)}\0".encode())
        digest.update((text if file.suffix in COMPILED else _code(text)).encode())
    return digest.hexdigest()


def _sources(root: Path) -> Iterable[Path]:
    yield from root.glob("*.py")
    for package in SIMULATED:
        for suffix in (".py", *COMPILED):
            yield from (root / package).rglob(f"*{suffix}")


def _code(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body: list[ast.stmt] | None = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, or the text below an attribute."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def append(path: Path, run: CampaignRun) -> None:
    line = msgspec.to_builtins(run)
    line["broken"] = run.broken
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def total_of(path: Path, code: str) -> Total:
    """Adds up the runs of this state of the code."""
    total = Total(Counter(), set(), [])
    for line in path.read_bytes().splitlines():
        run = msgspec.json.decode(line, type=CampaignRun)
        if run.code != code:
            continue
        total.kernels.add(run.kernel)
        total.broken += run.broken
        for nodes, count in run.by_nodes.items():
            kind = "logs" if run.world == "log" else "one broker" if nodes == "1" else "several brokers"
            total.worlds[kind] += count
    return total
