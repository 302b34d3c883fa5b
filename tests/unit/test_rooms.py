"""The broker without the cluster, and the cluster without the broker. The arrows between all rooms are import-linter's
business; this is about two of them, and about what works alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pandomq"

ALONE = """
import sys

class Refusal:
    def find_spec(self, name, path=None, target=None):
        room = name.split(".")[1:2]
        if name.startswith("pandomq.") and room[0] in ("cluster", "journal", "node", "replica", "runtime"):
            raise ImportError(f"{name} is not to be had")

sys.meta_path.insert(0, Refusal())

from pandomq import methods
from tests.unit.broker.conversation import World

peer = World().peer()
peer.declare("q", durable=True)
peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
peer.publish("", "q", b"alone")
(confirm,) = peer.hear()
assert isinstance(confirm.method, methods.BasicAck)
got = peer.get()
assert got is not None and got.body == b"alone"
print("served")
"""


@pytest.mark.proves("R33")
def test_a_broker_serves_without_any_code_of_clusters() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert done.stdout == "served\n", done.stderr


@pytest.mark.proves("R33")
def test_cluster_journal_and_replica_know_the_payloads_of_a_broker_as_bytes_only() -> None:
    """Elections, the log and links carry what they cannot read; who stands for clients elsewhere is a broker itself."""
    knowing = {
        file.relative_to(SOURCE).parts[:2]
        for room in ("cluster", "journal", "replica")
        for file in (SOURCE / room).rglob("*.py")
        if "pandomq.broker" in file.read_text()
    }
    assert knowing == {("cluster", "proxy")}
