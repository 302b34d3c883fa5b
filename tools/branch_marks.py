"""Marks each branch of the product as it is taken, at a small part of the cost of tracing lines.

A module of the measured packages is compiled with one more statement at the beginning of each block of its functions:
of the function itself, of `if` and `else`, loops, cases and handlers. An `if` without `else` gets one, so that both
ways count. The statement sets one byte in an array that all modules share. Branches are numbered by the order of the
files' names and their place in the file, so the numbers are the same in all processes that run the same source.

`install()` has to be called before any of these packages is imported.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

SOURCE: Final = Path(__file__).parent.parent / "src" / "pandomq"
PACKAGES: Final = ("broker", "cluster", "journal", "node", "replica")
PLOTS: Final = "sim/logs/plots"
"""The plots are not part of the product, but the progress of a plot shows what a world of logs exercises."""
MARKS: Final = "_branch_marks"
"""The name of the array in the modules."""


class _Marker(ast.NodeTransformer):
    """Puts a mark at the beginning of each block within functions."""

    def __init__(self, first: int) -> None:
        self.next = first
        self._depth = 0

    def _marked(self, body: list[ast.stmt]) -> list[ast.stmt]:
        mark = ast.parse(f"{MARKS}[{self.next}] = 1").body[0]
        self.next += 1
        docstring = 1 if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        return [*body[:docstring], mark, *body[docstring:]]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        node.body = self._marked(node.body)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if not self._depth:
            return node
        match node:
            case ast.If() | ast.For() | ast.While():
                node.body = self._marked(node.body)
                node.orelse = self._marked(node.orelse)
            case ast.ExceptHandler() | ast.match_case():
                node.body = self._marked(node.body)
            case _:
                pass
        return node


def files() -> list[Path]:
    return sorted(path for package in (*PACKAGES, PLOTS) for path in (SOURCE / package).rglob("*.py"))


class BranchMarks(MetaPathFinder):
    """Finds the measured modules and loads them with marks."""

    def __init__(self) -> None:
        self._codes: dict[str, CodeType] = {}
        count = 0
        for path in files():
            marker = _Marker(count)
            tree = ast.fix_missing_locations(marker.visit(ast.parse(path.read_bytes())))
            self._codes[str(path)] = compile(tree, str(path), "exec", dont_inherit=True)
            count = marker.next
        self.marks = bytearray(count)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith("pandomq.") else None
        code = None if spec is None or spec.origin is None else self._codes.get(spec.origin)
        if spec is None or code is None or spec.origin is None:
            return None
        spec.loader = _Loader(fullname, spec.origin, code, self.marks)
        return spec

    def take(self) -> int:
        """Returns the branches that were taken since the last call, as bits."""
        taken = int("".join("1" if mark else "0" for mark in reversed(self.marks)) or "0", 2)
        self.marks[:] = bytes(len(self.marks))
        return taken


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, code: CodeType, marks: bytearray) -> None:
        super().__init__(fullname, path)
        self._code = code
        self._marks = marks

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, MARKS, self._marks)
        super().exec_module(module)


def install() -> BranchMarks:
    loaded = [name for name in sys.modules if name.startswith(tuple(f"pandomq.{package}" for package in PACKAGES))]
    assert not loaded, f"{loaded[0]} was imported before its branches could be marked"
    found = BranchMarks()
    sys.meta_path.insert(0, found)
    return found
