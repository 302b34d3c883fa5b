"""Both twins offer the same names."""

from __future__ import annotations

import inspect
from types import ModuleType

import pandomq.kernel


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_the_same_names(plain: ModuleType, fast: ModuleType) -> None:
    assert sorted(plain.__all__) == sorted(fast.__all__)
    assert set(pandomq.kernel.__all__) - set(plain.__all__) == {"Hooks", "ReplayHooks"}
    assert (plain.KIND, fast.KIND) == ("plain", "fast")


def test_the_plain_twin_has_all_methods_with_the_same_parameters(plain: ModuleType, fast: ModuleType) -> None:
    for name in fast.__all__:
        cls, twin = getattr(fast, name), getattr(plain, name)
        if not inspect.isclass(cls) or cls is twin:
            continue
        for method in public(cls):
            if callable(getattr(cls, method)):
                theirs, ours = (inspect.signature(getattr(owner, method)) for owner in (cls, twin))
                assert list(theirs.parameters) == list(ours.parameters), (name, method)


def test_constants_are_the_same(plain: ModuleType, fast: ModuleType) -> None:
    for name in plain.__all__:
        if name.isupper() and name != "KIND":
            assert getattr(plain, name) == getattr(fast, name)
