"""Jobs on a standalone cluster, as `--master` has it: a master, a worker, and a driver that is neither."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pandomq.pipeline.lake import Lake
from tests.integration.configured_broker import ConfiguredBroker, running
from tests.spark.pipeline.job_process import job
from tests.spark.pipeline.test_lake_jobs import publish, url_of
from tests.spark.spark_cluster import SparkCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
NOT_ALL_IS_JUDGED = 3


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    cluster = SparkCluster(tmp_path / "spark", workers=1)
    try:
        cluster.start()
        yield cluster.url
    finally:
        cluster.end()


@pytest.mark.proves("S7")
def test_an_archive_and_an_audit(master: str, tmp_path: Path) -> None:
    lake, data = tmp_path / "lake", tmp_path / "data"
    with running(ConfiguredBroker(tmp_path / "b", node={"data": str(data)})) as broker:
        publish(broker, "far.away", range(500))
        words = ("archive", str(lake), "--url", url_of(broker), "--once")
        with job(tmp_path / "archive", *words, master=master) as archive:
            archive.start()
            assert archive.wait()["facts"]["rows in the lake"] == 500
    assert sum(file.rows for file in Lake(lake).files()) == 500
    with job(tmp_path / "audit", "audit", "--data", str(data), master=master) as audit:
        audit.start()
        # There is no ledger.
        summary = audit.wait(NOT_ALL_IS_JUDGED)
        assert summary["good"] and summary["facts"]["messages"] == 500
        assert summary["tables"]["Promises"][0]["verdict"] == "proven"
