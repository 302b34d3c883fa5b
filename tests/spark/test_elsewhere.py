"""Spark where the package is not installed: as an archive that `spark-submit` brings along, and behind a Spark Connect
server whose clients know nothing of it. Batch and streaming, source and sink; and passwords are shown to nobody."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pandomq.spark import archive
from tests.integration.configured_broker import ConfiguredBroker, quick_hash, running

from . import ledger
from .bare_program import ROWS
from .bare_python import BarePython

PATIENCE_S = 500
PROGRAM = Path(__file__).parent / "bare_program.py"
PASSWORD = "hunter2-of-ann"
EXPECTED = [f"ROW {number}" for number in range(ROWS)]

pytestmark = pytest.mark.proves("S1", "S2")


class Scene(NamedTuple):
    """A broker with two streams, a user, and a Python that has nothing of ours."""

    broker: ConfiguredBroker
    python: BarePython
    directory: Path

    def run(self, words: list[str], options: dict[str, str], **environment: str) -> dict[str, Any]:
        own = {"BROKER_OPTIONS": json.dumps(options), "CHECKPOINT": str(self.directory / "checkpoint"), **environment}
        done = subprocess.run(
            words,
            cwd=self.directory,
            env=self.python.environment | own,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert PASSWORD not in done.stdout + done.stderr, "what a client prints shows the password"
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        assert found["bodies"] == sorted(EXPECTED)
        assert "pandomq" in found["plans"]
        assert "stream 'nothing' does not exist" in found["refusal"]
        copied = ledger.read_stream(self.broker.connect, "copied", ROWS)
        assert copied == [line.encode() for line in EXPECTED]
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with running(ConfiguredBroker(tmp_path / "broker", node={"http": "127.0.0.1:0"})) as broker:
        broker.define(
            users=[{"name": "ann", "tags": "", **quick_hash(PASSWORD)}],
            permissions=[{"user": "ann", "vhost": "/", "configure": "", "write": ".*", "read": ".*"}],
        )
        for name in ("sent", "copied"):
            ledger.declare_stream(broker.connect, name)
        yield Scene(broker, BarePython(tmp_path / "python"), tmp_path)


@pytest.mark.timeout(PATIENCE_S + 60)
def test_a_client_of_spark_connect_needs_nothing(scene: Scene, connect_port: int, event_log: Callable[[], str]) -> None:
    # Spark Connect notes what its clients say as it is: a password has to be on the server already.
    secret = scene.directory / "secret"
    secret.write_text(f"{PASSWORD}\n")
    options = {"url": f"amqp://127.0.0.1:{scene.broker.port}/", "user": "ann", "passwordFile": str(secret)}
    words = [str(scene.python.program), str(PROGRAM)]
    found = scene.run(words, options, SPARK_REMOTE=f"sc://127.0.0.1:{connect_port}")
    assert not found["client_has_it"]
    logged = event_log()
    assert "pandomq" in logged and PASSWORD not in logged


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_S + 60)
def test_an_archive_is_all_that_spark_submit_needs(scene: Scene) -> None:
    packed = scene.directory / "pandomq-spark.zip"
    archive.write(packed)
    events = scene.directory / "events"
    events.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events),
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    words = [str(Path(scene.python.environment["SPARK_HOME"]) / "bin" / "spark-submit"), "--py-files", str(packed)]
    words += ["--master", "local[2]"]
    for name, value in settings.items():
        words += ["--conf", f"{name}={value}"]
    # Executors find what `--py-files` brings; what Spark starts beside the driver looks where the driver does.
    paths = f"{packed}:{scene.python.environment['PYTHONPATH']}"
    options = {"url": f"amqp://ann:{PASSWORD}@127.0.0.1:{scene.broker.port}/"}
    found = scene.run([*words, str(PROGRAM)], options, PYTHONPATH=paths)
    assert all(packed.name in place for place in found["code"]), found["code"]
    logged = "".join(path.read_text() for path in events.rglob("*") if path.is_file())
    assert "pandomq" in logged and PASSWORD not in logged
