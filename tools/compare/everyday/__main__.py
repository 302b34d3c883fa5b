"""`make bench-everyday`: PandoMQ and Debian's RabbitMQ at everyday rates; writes docs/everyday.json and
docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import track

from pandomq.bench.broker_process import BrokerProcess, PandoBroker
from pandomq.bench.run import measure
from tools.compare.command import DOCS
from tools.compare.everyday.figures import (
    CONFIRM_P50,
    CONFIRM_P99,
    CPU,
    KINDS,
    RATES,
    EverydayFigures,
    Kind,
    load_of,
    subject_of,
)
from tools.compare.peers import documents
from tools.compare.peers.ledger import FAST, RABBITMQ
from tools.compare.peers.machine import this_machine
from tools.compare.peers.other_work import OtherWork
from tools.compare.peers.rabbit import RabbitBroker, install_rabbitmq


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.compare.everyday", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="Number of rounds (default 5).")
    parser.add_argument("--seconds", type=float, default=3.0, help="Duration of each load in seconds (default 3).")
    parser.add_argument(
        "--out", type=Path, default=DOCS, help="Directory for everyday.json and benchmarks.md (default docs/)."
    )
    parser.add_argument("--page", action="store_true", help="Only write the page again from the JSON file.")
    options = parser.parse_args()
    if not options.page:
        try:
            install_rabbitmq()
        except RuntimeError as error:
            sys.stderr.write(f"bench-everyday: {error}\n")
            return 1
        documents.write_figures(options.out / documents.EVERYDAY, compare(options.rounds, options.seconds))
    documents.write_page(options.out, DOCS)
    return 0


def compare(rounds: int, seconds: float) -> EverydayFigures:
    others = OtherWork()
    with ExitStack() as ends, tempfile.TemporaryDirectory() as directory:
        brokers: dict[str, BrokerProcess] = {
            RABBITMQ: RabbitBroker(RABBITMQ, Path(directory) / "rabbit"),
            FAST: PandoBroker(FAST, Path(directory) / "pando", plain=False),
        }
        for broker in brokers.values():
            ends.callback(broker.close)
            broker.start()
        found = EverydayFigures(
            datetime.now(UTC).date().isoformat(),
            this_machine(),
            seconds,
            {name: broker.version for name, broker in brokers.items()},
            0.0,
            {},
        )
        runs = list(_runs(rounds))
        for kind, rate, name in track(runs, "everyday loads", console=Console(stderr=True)):
            broker = brokers[RABBITMQ if name.startswith(RABBITMQ) else name]
            load = msgspec.structs.replace(load_of(kind, rate, name, seconds), url=broker.url)
            measured = measure(load, pid=broker.pid)
            assert not measured.missing, f"{name} lost {measured.missing} messages"
            figures = {} if measured.broker_cpu_us is None else {CPU: measured.broker_cpu_us}
            if measured.confirm_latency is not None:
                figures |= {
                    CONFIRM_P50: measured.confirm_latency.p50_us,
                    CONFIRM_P99: measured.confirm_latency.p99_us,
                }
            found.rounds.setdefault(subject_of(kind, rate), {}).setdefault(name, []).append(figures)
    found.others_share = others.share()
    return found


def _runs(rounds: int) -> Iterator[tuple[Kind, int, str]]:
    """The same loads run on one broker after the other; the order is reversed in every round."""
    for number in range(rounds):
        for kind in KINDS:
            for rate in RATES:
                names = (FAST, *kind.peers)
                for name in names if number % 2 else reversed(names):
                    yield kind, rate, name


if __name__ == "__main__":
    sys.exit(main())
