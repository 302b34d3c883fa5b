"""The simulator runs the code of `pandomq start`: the same files, and nothing in them replaced."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from types import FunctionType, ModuleType

import pytest

from pandomq.sim.campaigns.campaign import Job, run_job
from tests.sim.planted.catalogue import PLANTED_BUGS

ROOMS = ("broker", "cluster", "journal", "kernel", "node", "replica", "wire")


def loaded_by(code: str) -> dict[str, str]:
    """Returns the modules of the rooms and their files, in a process that ran this code."""
    script = (
        f"import json, sys\n{code}\n"
        "print(json.dumps({name: getattr(module, '__file__', '') for name, module in sys.modules.items()"
        f" if name.startswith(tuple('pandomq.' + room for room in {ROOMS!r}))}}))"
    )
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(child.stdout.splitlines()[-1])
    return found


WORLDS = ("Job(1)", "Job(1, nodes=3)", "Job(2, nodes=3, log=True)")
"""One world of each kind."""
READ_BY_CHECKERS = ("pandomq.kernel.plain.page",)
"""A checker reads the indexes of pages with it, on both kernels; no simulated broker uses it."""


def test_the_same_modules_are_loaded() -> None:
    started = loaded_by("import pandomq.cli.start, pandomq.runtime.process")
    runs = "\n".join(f"run_job({world})" for world in WORLDS)
    simulated = loaded_by(f"from pandomq.sim.campaigns.campaign import Job, run_job\n{runs}")
    for name in READ_BY_CHECKERS:
        simulated.pop(name, None)
    assert {name: started.get(name) for name in simulated} == simulated
    for room in ROOMS:
        assert any(name.startswith(f"pandomq.{room}.") for name in simulated), room


@pytest.mark.parametrize("room", ["cluster", "journal", "replica"])
def test_nothing_that_a_broker_runs_is_left_out(room: str) -> None:
    """A simulated world loads all code that elects, replicates and stores; no substitute replaces a part of it."""
    started = loaded_by("import pandomq.cli.start, pandomq.runtime.process")
    simulated = loaded_by("import pandomq.sim.campaigns.campaign")
    inside = {name for name in started if name.startswith(f"pandomq.{room}.")}
    assert inside and inside <= set(simulated)


def functions(module: ModuleType) -> dict[str, FunctionType]:
    """Returns all functions that the module defines, also those in its classes and in their tables of handlers."""
    found: dict[str, FunctionType] = {}
    for name, value in vars(module).items():
        if isinstance(value, FunctionType):
            found[name] = value
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            for attribute, member in vars(value).items():
                inner = member.fget if isinstance(member, property) else member
                table = inner.items() if isinstance(inner, dict) else [("", inner)]
                for key, entry in table:
                    if isinstance(entry, FunctionType):
                        found[f"{name}.{attribute}{key}"] = entry
    return found


def replaced() -> list[str]:
    """Returns functions in the rooms that were not defined there."""
    rooms = tuple(f"pandomq.{room}" for room in ROOMS)
    modules = [module for name, module in sys.modules.items() if name.startswith(rooms)]
    return [
        f"{module.__name__}.{name}"
        for module in modules
        for name, function in functions(module).items()
        if ".sim" in function.__module__ or "tests" in function.__module__
    ]


def test_nothing_in_them_is_replaced() -> None:
    for job in (Job(2), Job(2, nodes=3), Job(2, nodes=3, log=True)):
        run_job(job)
        assert replaced() == []


def test_a_planted_bug_is_taken_out_again() -> None:
    for bug in PLANTED_BUGS.values():
        with bug.planted():
            assert replaced(), bug.name
        assert replaced() == []
