"""Both twins offer the same names."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pandomq.kernel


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def names() -> list[str]:
    """The classes and functions of the contract."""
    stubs = Path(pandomq.kernel.__file__).parent.glob("_fast*.pyi")
    trees = [ast.parse(stub.read_text()) for stub in stubs]
    return [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]


def test_both_twins_offer_the_same_names(plain: ModuleType, fast: ModuleType) -> None:
    used = plain if pandomq.kernel.PLAIN else fast
    for name in names():
        assert hasattr(plain, name) and hasattr(fast, name), name
        assert getattr(pandomq.kernel, name) is getattr(used, name), name
    assert (plain.KIND, fast.KIND) == ("plain", "fast")


def test_the_plain_twin_has_all_methods_with_the_same_parameters(plain: ModuleType, fast: ModuleType) -> None:
    for name in names():
        cls, twin = getattr(fast, name), getattr(plain, name)
        if not inspect.isclass(cls) or cls is twin:
            continue
        for method in public(cls):
            if callable(getattr(cls, method)):
                theirs, ours = (inspect.signature(getattr(owner, method)) for owner in (cls, twin))
                assert list(theirs.parameters) == list(ours.parameters), (name, method)
