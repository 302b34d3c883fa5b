"""`make bench-peers`: PandoMQ against Debian's RabbitMQ on this machine; writes docs/benchmarks.json and the page.

Installs RabbitMQ if it is missing and this is root. Ends within the time allowed, and with it the brokers it started.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pandomq.bench.peers import documents, works
from pandomq.bench.peers.comparison import Comparison, compare
from pandomq.bench.run import Show

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.bench_tool import options_of, run


def measure(options: argparse.Namespace, show: Show) -> Comparison:
    rounds, scale = (1, works.QUICK) if options.quick else (options.rounds, works.FULL)
    return compare(rounds, scale, options.minutes, show)


def main() -> int:
    parser = options_of(__doc__, figures=documents.ONE_BROKER, quick="everything, but small: about three minutes")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; medians are reported (5)")
    return run("peers", parser.parse_args(), documents.ONE_BROKER, measure)


if __name__ == "__main__":
    sys.exit(main())
