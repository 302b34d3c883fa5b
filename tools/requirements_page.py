"""Writes docs/requirements.md: each requirement, its text, and the tests that prove it.

The texts come from docs/requirements.toml, the proofs from the `@pytest.mark.proves("R5", ...)` marks on tests, on
their classes, and in a module's `pytestmark`. The tests are parsed, never imported, so the page needs no broker, no
client library and no kernel. With --check nothing is written, and the exit code says whether the page is up to date.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "docs" / "requirements.toml"
PAGE = ROOT / "docs" / "requirements.md"
TESTS = ROOT / "tests"

HEADING = """# Requirements and their proofs

This page lists the requirements and the tests that prove them: {proven} of {total} have at least one. A requirement
without a test is not done. `make docs` generates the page from `docs/requirements.toml` and the `proves` marks in
`tests/`; edit those.
"""


class Requirement(NamedTuple):
    id: str
    section: str
    asks: str


class Proof(NamedTuple):
    requirement: str
    path: str
    test: str


def read_requirements(text: str) -> list[Requirement]:
    requirements = [Requirement(**entry) for entry in tomllib.loads(text)["requirement"]]
    ids = [requirement.id for requirement in requirements]
    twice = {name for name in ids if ids.count(name) > 1}
    if twice:
        raise ValueError(f"requirements stated twice: {sorted(twice)}")
    return requirements


def claimed(expression: ast.expr) -> Iterator[str]:
    """Yields the ids in a mark, or in a list of marks; other marks have none."""
    match expression:
        case ast.Call(func=ast.Attribute(attr="proves"), args=arguments):
            for argument in arguments:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise ValueError(f"line {argument.lineno}: an id must be written out as a string")
                yield argument.value
        case ast.List(elts=marks) | ast.Tuple(elts=marks):
            for mark in marks:
                yield from claimed(mark)
        case _:
            pass


def module_marks(body: list[ast.stmt]) -> set[str]:
    """Returns the ids that a `pytestmark = ...` in a module's or class's body assigns to every test in it."""
    ids: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                ids.update(claimed(value))
            case ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as value):
                ids.update(claimed(value))
            case _:
                pass
    return ids


def proofs_in(body: list[ast.stmt], path: str, prefix: str = "", inherited: Iterable[str] = ()) -> Iterator[Proof]:
    shared = module_marks(body).union(inherited)
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test"):
                own = shared.union(*(claimed(mark) for mark in statement.decorator_list))
                yield from (Proof(requirement, path, prefix + name) for requirement in own)
            case ast.ClassDef(name=name, body=inner):
                own = shared.union(*(claimed(mark) for mark in statement.decorator_list))
                yield from proofs_in(inner, path, f"{prefix}{name}::", own)
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("Test"):
                # Hypothesis' state machines become tests by assignment: TestQueue = QueueMachine.TestCase.
                yield from (Proof(requirement, path, prefix + name) for requirement in shared)
            case _:
                pass


def read_proofs(tests: Path) -> list[Proof]:
    files = (path for path in tests.rglob("test_*.py") if "node_modules" not in path.parts)
    return sorted(
        proof
        for path in files
        for proof in proofs_in(ast.parse(path.read_text(), str(path)).body, path.relative_to(tests.parent).as_posix())
    )


def render(requirements: list[Requirement], proofs: list[Proof]) -> str:
    tests_by_id: dict[str, list[Proof]] = defaultdict(list)
    for proof in proofs:
        tests_by_id[proof.requirement].append(proof)
    unknown = tests_by_id.keys() - {requirement.id for requirement in requirements}
    if unknown:
        places = sorted(f"{proof.path}::{proof.test}" for name in unknown for proof in tests_by_id[name])
        raise ValueError(f"tests claim requirements that nobody stated: {sorted(unknown)} in {places}")

    proven = sum(requirement.id in tests_by_id for requirement in requirements)
    lines = [HEADING.format(proven=proven, total=len(requirements))]
    for section, members in groupby(requirements, key=lambda requirement: requirement.section):
        lines += [f"## {section}\n", "| id | requirement | proven by |", "| --- | --- | --- |"]
        for requirement in members:
            tests = "<br>".join(f"`{proof.path}::{proof.test}`" for proof in tests_by_id.get(requirement.id, []))
            asks = requirement.asks.replace("|", "\\|")
            lines.append(f"| {requirement.id} | {asks} | {tests or '—'} |")
        lines.append("")
    return "\n".join(lines)


def current_page() -> str:
    return render(read_requirements(SOURCE.read_text()), read_proofs(TESTS))


def main(arguments: list[str]) -> int:
    page = current_page()
    if arguments == ["--check"]:
        if PAGE.exists() and PAGE.read_text() == page:
            return 0
        print("docs/requirements.md is not up to date: make docs", file=sys.stderr)
        return 1
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
