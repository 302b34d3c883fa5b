"""Which kernel the tests run on, which requirements they may claim to prove, and how patient hypothesis is."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.support import against, examples, order, starting

if TYPE_CHECKING:
    from tests.integration.cluster.under_test import ClusterUnderTest

HERE = Path(__file__).parent
REQUIREMENTS = HERE.parent / "docs" / "requirements.toml"
WHOLE_ON_BOTH_KERNELS = tuple(
    f"{HERE}/{place}"
    for place in (
        "spec/",
        "unit/broker/",
        "unit/cluster/",
        "unit/journal/",
        "unit/kernel/test_twins.py",
        "unit/node/",
        "unit/wire/",
    )
)
"""Rooms that work on a kernel. The kernel's own tests have both twins in each run; other rooms use neither."""

# A time limit for a single example fails on a busy machine and finds no bug: the test's own time-out bounds the whole.
# In CI the examples are the same in each run, so that a red build is red for a reason in its change.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel",
        choices=("fast", "plain"),
        help="insist on one kernel; otherwise PANDOMQ_PLAIN decides, as for a user",
    )
    parser.addoption(
        "--against", choices=against.PLACES, help="ask a cluster instead of a single broker: where clients go"
    )
    parser.addoption("--telling", action="store_true", help="with --against: only the most telling files")
    parser.addoption("--quick", action="store_true", help="a third of hypothesis' examples, and brokers as copies")


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the kernel before anything of ours is imported, by the variable that brokers started by tests inherit."""
    # aio_pika closes a collected connection in the thread's event loop. Without this line asyncio makes a new loop for
    # that, which never runs, and its sockets and tasks are collected during another test.
    asyncio.set_event_loop(None)
    wanted = config.getoption("--kernel")
    if wanted == "plain":
        os.environ["PANDOMQ_PLAIN"] = "1"
    elif wanted == "fast":
        os.environ.pop("PANDOMQ_PLAIN", None)
        for module in ("pandomq.kernel._fast", "pandomq.runtime.disk._log_writer"):
            if importlib.util.find_spec(module) is None:
                raise pytest.UsageError(f"{module} is not built: run make build-kernel")
    if config.getoption("--quick"):
        examples.quick()
        starting.quick()
        hypothesis.settings.register_profile("quick", examples.profile())
        hypothesis.settings.load_profile("quick")


def pytest_report_header() -> str:
    plain = bool(os.environ.get("PANDOMQ_PLAIN")) or importlib.util.find_spec("pandomq.kernel._fast") is None
    return f"kernel: {'plain' if plain else 'fast'}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--against"):
        against.choose(config, items)
    for item in items:
        if str(item.path).startswith(WHOLE_ON_BOTH_KERNELS):
            item.add_marker(pytest.mark.both_kernels)
    order.put_long_ones_first(items)
    refuse_unknown_claims(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Spares the collector thousands of tests and their modules, which live as long as the process: otherwise each
    `gc.collect()` of a fixture takes half a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    return order.scheduler(config, log)


@pytest.fixture(scope="session")
def cluster_under_test(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest | None]:
    """With `--against`: what is tested instead of a single broker."""
    place = request.config.getoption("--against")
    if not place:
        yield None
        return
    # Not before the kernel is chosen.
    from tests.integration.cluster.under_test import ClusterUnderTest

    cluster = ClusterUnderTest(tmp_path_factory.mktemp("against"), place)
    try:
        cluster.start()
        yield cluster
        cluster.check()
    finally:
        cluster.end()


@pytest.fixture(autouse=True)
def cluster_stays_healthy(
    cluster_under_test: ClusterUnderTest | None, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Blames what goes wrong in the cluster on the test during which it did."""
    if cluster_under_test is None:
        yield
        return
    cluster_under_test.begin(request.node.nodeid)
    yield
    cluster_under_test.check()


def refuse_unknown_claims(items: list[pytest.Item]) -> None:
    """A test that claims to prove a requirement nobody has written is a typing error, not a proof."""
    known = {requirement["id"] for requirement in tomllib.loads(REQUIREMENTS.read_text())["requirement"]}
    for item in items:
        for mark in item.iter_markers("proves"):
            unknown = set(mark.args) - known
            if unknown or not mark.args:
                raise pytest.UsageError(
                    f"{item.nodeid} proves {sorted(unknown) or 'nothing'}: not in {REQUIREMENTS.name}"
                )
