from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tools import requirements_page
from tools.requirements_page import Proof, Requirement, proofs_in, read_requirements, render

MARKED = """
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.proves("R1")]

@pytest.mark.proves("R2", "R3")
async def test_alone(): ...

@pytest.mark.proves("L1a")
class TestTogether:
    @pytest.mark.proves("S1")
    def test_inner(self): ...

    def helper(self): ...

TestMachine = Machine.TestCase
"""


def claims(source: str) -> set[tuple[str, str]]:
    return {(proof.requirement, proof.test) for proof in proofs_in(ast.parse(source).body, "tests/test_x.py")}


def test_marks_of_module_class_and_function_add_up() -> None:
    assert claims(MARKED) == {
        ("R1", "test_alone"),
        ("R2", "test_alone"),
        ("R3", "test_alone"),
        ("R1", "TestTogether::test_inner"),
        ("L1a", "TestTogether::test_inner"),
        ("S1", "TestTogether::test_inner"),
        ("R1", "TestMachine"),
    }


def test_an_id_that_is_computed_is_refused() -> None:
    with pytest.raises(ValueError, match="written out"):
        claims("@pytest.mark.proves(name)\ndef test_it(): ...")


def test_a_claim_to_an_unknown_requirement_is_refused() -> None:
    with pytest.raises(ValueError, match="R99"):
        render([Requirement("R1", "Members", "One key.")], [Proof("R99", "tests/test_x.py", "test_it")])


def test_a_requirement_stated_twice_is_refused() -> None:
    entry = '[[requirement]]\nid = "R1"\nsection = "Members"\nasks = "One key."\n'
    with pytest.raises(ValueError, match="twice"):
        read_requirements(entry * 2)


def test_the_page_shows_proven_and_unproven_requirements() -> None:
    page = render(
        [Requirement("R1", "Members", "One key | one cluster."), Requirement("R2", "Members", "All to all.")],
        [Proof("R1", "tests/test_x.py", "test_it")],
    )
    assert "1 of 2 have at least one" in page
    assert "| R1 | One key \\| one cluster. | `tests/test_x.py::test_it` |" in page
    assert "| R2 | All to all. | — |" in page


def test_the_page_in_docs_is_up_to_date() -> None:
    # In a process of its own: it parses all tests, and CPython 3.11 fails with "recursion depth mismatch" if objects
    # that other tests have left are collected meanwhile.
    check = [sys.executable, requirements_page.__file__, "--check"]
    done = subprocess.run(check, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
