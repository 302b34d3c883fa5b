"""amqplib on node, with its promise and its callback API: each scenario of node/*.js in a process of its own."""

from __future__ import annotations

import re
import subprocess

import pytest

from .broker_under_test import BrokerUnderTest, Names
from .cable import Cable
from .conftest import NODE_DIRECTORY

SCENARIO = re.compile(r"^exports\.(\w+) =", re.MULTILINE)
TIMEOUT_S = 120
NEEDS_A_CABLE = {"reconnect"}


def scenarios(api: str) -> list[str]:
    return SCENARIO.findall((NODE_DIRECTORY / f"{api}.js").read_text())


def command(node: str, api: str, scenario: str, url: str, names: Names) -> list[str]:
    return [node, str(NODE_DIRECTORY / "run.js"), api, scenario, url, names.prefix]


@pytest.mark.parametrize(
    ("api", "scenario"),
    [(api, s) for api in ("promise", "callback") for s in scenarios(api) if s not in NEEDS_A_CABLE],
)
def test_scenario(node: str, broker: BrokerUnderTest, names: Names, api: str, scenario: str) -> None:
    run = subprocess.run(
        command(node, api, scenario, broker.url, names), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert run.returncode == 0, run.stderr


def test_reconnect_after_a_cut(node: str, broker: BrokerUnderTest, names: Names) -> None:
    with Cable(broker.host, broker.port) as cable:
        run = subprocess.Popen(
            command(node, "promise", "reconnect", broker.url_at(cable.port), names),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with run:
            assert run.stdout is not None
            if run.stdout.readline() == "holding\n":
                cable.cut()
            _, errors = run.communicate(timeout=TIMEOUT_S)
        assert run.returncode == 0, errors
