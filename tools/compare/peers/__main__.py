"""`make bench-peers`: PandoMQ against Debian's RabbitMQ on this machine; writes docs/benchmarks.json and the page.

Installs RabbitMQ if it is missing and the user is root. The tool ends within its time limit, and ends the brokers that
it started.
"""

from __future__ import annotations

import argparse
import sys

from pandomq.bench.run import Show
from tools.compare.command import options_of, run
from tools.compare.peers import documents, works
from tools.compare.peers.comparison import Comparison, compare


def measure(options: argparse.Namespace, show: Show) -> Comparison:
    rounds, scale = (1, works.QUICK) if options.quick else (options.rounds, works.FULL)
    return compare(rounds, scale, options.minutes, show)


def main() -> int:
    parser = options_of(
        "tools.compare.peers",
        __doc__,
        figures=documents.ONE_BROKER,
        quick="Measure everything with small loads, in about three minutes.",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="Number of rounds, of which medians are reported (default 5).",
    )
    return run("peers", parser.parse_args(), documents.ONE_BROKER, measure)


if __name__ == "__main__":
    sys.exit(main())
