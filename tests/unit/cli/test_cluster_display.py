"""The display of brokers by `cluster up`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from pandomq.cli.cluster.display import LiveTable, state_of
from pandomq.cli.cluster.plan import ClusterPlan
from pandomq.cli.cluster.polling import BrokerAnswers, ClusterAnswers
from pandomq.cli.cluster.processes import Process

PLACES = ClusterPlan(primaries=3, secondaries=0, port=5672, http_port=15672, data=Path("d")).places()


class Ended:
    runs = False
    end = "killed by SIGKILL"
    pid = 7


class Running:
    runs = True
    end = ""
    pid = 8


def cluster(name: str, role: str) -> dict[str, Any]:
    member = {"name": name, "role": role, "in_sync": True, "log_index": 12, "commit_index": 11, "lag_bytes": 0}
    return {"role": role, "term": 4, "cluster": "an id", "members": [member]}


ANSWERS = ClusterAnswers(
    {
        "n1": BrokerAnswers(cluster("n1", "root"), "ready"),
        "n2": BrokerAnswers(None, ""),
        "n3": BrokerAnswers(None, "not ready: this broker is not yet part of a cluster: waiting for n2"),
    }
)


def test_each_broker_has_a_state() -> None:
    running, ended = cast(Process, Running()), cast(Process, Ended())
    n1, n2, n3 = PLACES
    assert state_of(n1, running, ANSWERS) == "ready"
    assert state_of(n2, ended, ANSWERS) == "killed by SIGKILL"
    assert state_of(n2, running, ANSWERS) == "starting"
    assert state_of(n2, None, ANSWERS) == "not running"
    assert state_of(n3, running, ANSWERS).endswith("waiting for n2")
    # Somebody else has started it again.
    assert state_of(n1, ended, ANSWERS) == "ready"


def test_the_table_shows_them_all() -> None:
    processes = {"n1": cast(Process, Running()), "n2": cast(Process, Ended())}
    table = LiveTable(PLACES, processes, Console(file=io.StringIO(), width=140, force_terminal=False))
    with table:
        table.show(ANSWERS)
    shown = table.console.file.getvalue()  # type: ignore[attr-defined]
    assert "cluster an id   term 4   root n1" in shown
    assert "n1     root   127.0.0.1:5672" in shown
    assert "killed by SIGKILL" in shown
