"""`make bench-streams`: a stream, filled and read over AMQP, on Debian's RabbitMQ and then on this broker.

Prints a table; `--json FILE` keeps the figures. Installs RabbitMQ if it is missing and this is root.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pandomq.bench.broker_process import BrokerProcess, PandoBroker
from tools.compare.peers.rabbit import RabbitBroker, install_rabbitmq

PREFETCHES = (1_000, 10_000)
TIMEOUT_S = 300


def measure(broker: BrokerProcess, prefetch: int, directory: Path) -> dict[str, Any]:
    """Returns the medians of three rounds of `pandomq bench streams`."""
    result = directory / "result.json"
    program = str(Path(sys.executable).with_name("pandomq"))
    place = ["--url", broker.url, "--pid", str(broker.pid)]
    subprocess.run(
        [program, "bench", "streams", *place, "--prefetch", str(prefetch), "--quiet", "--json", str(result)],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
    )
    measured: dict[str, Any] = json.loads(result.read_text())["result"]
    return measured


def table(found: list[dict[str, Any]]) -> str:
    """Returns the table of docs/streams.md."""
    lines = [
        "| broker | prefetch | filled, messages/s | read, messages/s | broker's processor, µs a message read |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in found:
        fill, read = row["fill"], row["read"]
        figures = f"{fill['rate']:,.0f} | {read['rate']:,.0f} | {read['broker_cpu_us']:.1f}"
        lines.append(f"| {row['server']} | {row['prefetch']:,} | {figures} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.compare.streams", description=__doc__)
    parser.add_argument("--json", type=Path, help="Write the result as JSON to this file.")
    options = parser.parse_args()
    install_rabbitmq()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="pandomq-streams-") as name:
        directory = Path(name)
        for broker in (RabbitBroker("rabbit", directory), PandoBroker("pando", directory, plain=False)):
            broker.start()
            try:
                found += [measure(broker, prefetch, directory) for prefetch in PREFETCHES]
            finally:
                broker.close()
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
