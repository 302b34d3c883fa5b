"""The declarative example, as a person would run it: twice, with more orders in between."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.integration.configured_broker import ConfiguredBroker, running
from tests.spark.ledger import declare_stream, read_stream
from tests.spark.sessions import REPOSITORY, prepare_environment

RUN_TIMEOUT_S = 600
EXAMPLE = REPOSITORY / "examples" / "declarative"


def publish(broker: ConfiguredBroker, numbers: range) -> None:
    with contextlib.closing(broker.connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in numbers:
            order = {"id": number, "country": ["de", "fr", "gb"][number % 3], "amount": number / 2}
            channel.basic_publish("", "orders", json.dumps(order).encode())


def run(work: Path, broker: ConfiguredBroker) -> None:
    spec = work / "spark-pipeline.yml"
    text = (EXAMPLE / "spark-pipeline.yml").read_text().replace("/tmp/pandomq-declarative", str(work))
    spec.write_text(text)
    if not (work / "transformations").exists():
        (work / "transformations").symlink_to(EXAMPLE / "transformations")
    environment = {
        **os.environ,
        **prepare_environment(work),
        "PANDOMQ_AMQP_URL": f"amqp://guest:guest@127.0.0.1:{broker.port}/",
    }
    program = Path(sys.executable).parent / "spark-pipelines"
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }
    chosen = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [program, "run", "--spec", spec, *chosen], cwd=work, env=environment, timeout=RUN_TIMEOUT_S, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:] + done.stdout.decode()[-4000:]


@pytest.mark.slow
@pytest.mark.timeout(2 * RUN_TIMEOUT_S + 60)
@pytest.mark.proves("S7")
def test_orders(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="declarative pipelines need pyspark[pipelines]")
    with running(ConfiguredBroker(tmp_path / "broker")) as broker:
        for stream in ("orders", "large-orders"):
            declare_stream(broker.connect, stream)
        total = 0
        for count in (150, 50):
            publish(broker, range(total, total + count))
            total += count
            run(tmp_path, broker)
            large = [number for number in range(total) if number / 2 >= 50]
            found = read_stream(broker.connect, "large-orders", len(large))
            assert [json.loads(body)["id"] for body in found] == large
            rows = parquet.read_table(tmp_path / "warehouse" / "sales").to_pylist()
            assert {row["country"]: row["orders"] for row in rows} == {
                country: len(range(place, total, 3)) for place, country in enumerate(["de", "fr", "gb"])
            }
            assert sum(row["amount"] for row in rows) == sum(range(total)) / 2
