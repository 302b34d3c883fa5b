"""Laws of the kernel are stated once and tested on both twins."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.unit.kernel.world import World

FAST = "pandomq.kernel._fast"
PLAIN = "pandomq.kernel._plain"


def twin(name: str) -> ModuleType:
    if importlib.util.find_spec(name) is None:
        pytest.skip("the compiled kernel is not built")
    return importlib.import_module(name)


@pytest.fixture(scope="session", params=[PLAIN, FAST], ids=["plain", "fast"])
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    return twin(request.param)


@pytest.fixture
def world(kernel: ModuleType) -> World:
    return World(kernel)


@pytest.fixture(scope="session")
def fast() -> ModuleType:
    return twin(FAST)


@pytest.fixture(scope="session")
def plain() -> ModuleType:
    return twin(PLAIN)


@pytest.fixture(scope="session")
def kernel_world(kernel: ModuleType) -> Callable[[], World]:
    """For tests that need a fresh world for each example."""
    return lambda: World(kernel)
