"""A job that cannot be done, or dies, says why in a line, not by Spark's traces; if it can, before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandomq.cli.pipeline import running
from pandomq.cli.pipeline.running import reason_of
from pandomq.pipeline.lake import Lake
from tests.support.ports import free_port
from tests.unit.cli.conftest import Type

FROM_SPARK = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR]
Traceback (most recent call last):
  File "client.py", line 1, in ask
pandomq.data_client.failures.Unreachable: no broker completed the request in time (streams): connection refused
 SQLSTATE: 38000"""

FROM_JAVA = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: All masters are unresponsive! Giving up.
\tat org.apache.spark.deploy.client"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (FROM_JAVA, "org.apache.spark.SparkException: All masters are unresponsive! Giving up."),
        (FROM_SPARK, "no broker completed the request in time (streams): connection refused"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/lake\nmore", "[PATH_NOT_FOUND] Path does not exist: file:/lake"),
    ],
)
def test_the_reason(text: str, reason: str) -> None:
    assert reason_of(text) == reason


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> str:
    """Where no broker is."""
    monkeypatch.setattr(running, "REACH_S", 0.2)
    return f"amqp://guest:guest@127.0.0.1:{free_port()}/"


def test_no_broker(type_: Type, tmp_path: Path, nowhere: str) -> None:
    with Lake(tmp_path / "lake").writing():
        pass
    for words in (("archive",), ("rollup",), ("replay", "--to-stream", "s")):
        result = type_("pipeline", words[0], str(tmp_path / "lake"), *words[1:], "--url", nowhere)
        assert result.exit_code == 3 and "127.0.0.1" in result.stderr, result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_an_url_that_is_none(type_: Type, tmp_path: Path) -> None:
    result = type_("pipeline", "archive", str(tmp_path / "lake"), "--url", "http://127.0.0.1/")
    assert result.exit_code == 2 and result.stderr.startswith("pandomq: ")


def test_a_lake_of_another_form(type_: Type, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "part-0.parquet").write_bytes(b"PAR1")
    for job, words in (
        ("archive", "is not a lake, but not empty"),
        ("rollup", "is not a lake, but not empty"),
        ("compact", "contains no lake"),
        ("replay", "contains no lake"),
    ):
        more = ("--to-stream", "s") if job == "replay" else ()
        result = type_("pipeline", job, str(tmp_path / "other"), *more)
        assert result.exit_code == 1 and words in result.stderr, result.stderr


@pytest.mark.parametrize("option", ["--json", "--report"])
def test_an_unwritable_file_is_a_usage_error(type_: Type, tmp_path: Path, option: str) -> None:
    result = type_("pipeline", "archive", str(tmp_path / "lake"), option, str(tmp_path / "no" / "such" / "file"))
    assert result.exit_code == 2 and "does not exist: create it, or choose another one" in result.stderr


def test_stores_and_ledgers_that_are_not_there(type_: Type, tmp_path: Path) -> None:
    result = type_("pipeline", "audit", "--data", str(tmp_path))
    assert result.exit_code == 1 and "contains no store" in result.stderr
    result = type_("pipeline", "audit", "--data", str(tmp_path), "--ledger", str(tmp_path / "gone.jsonl"))
    assert result.exit_code == 2 and "ledgers not found" in result.stderr


def test_a_rate_and_a_factor(type_: Type, tmp_path: Path) -> None:
    given = ("--to-stream", "s", "--rate", "100", "--factor", "2.5")
    result = type_("pipeline", "replay", str(tmp_path / "lake"), *given)
    assert result.exit_code == 2
    assert result.stderr == "pandomq: --rate 100 and --factor 2.5 cannot be combined: give one of them\n"
