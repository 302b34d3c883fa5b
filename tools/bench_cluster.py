"""`make bench-cluster`: three brokers against three of Debian's RabbitMQ; writes docs/clusters.json and the page.

Installs RabbitMQ if it is missing and this is root. As root, each broker is in a network namespace and, for faults, on
a file system of its own; otherwise what needs that is left out, and said so. Ends within the time allowed, and with it
all that it started.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pandomq.bench.clusters import works
from pandomq.bench.clusters.comparison import ClusterComparison, compare_clusters
from pandomq.bench.peers import documents
from pandomq.bench.run import Show

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.bench_tool import options_of, run


def measure(options: argparse.Namespace, show: Show) -> ClusterComparison:
    return compare_clusters(works.QUICK if options.quick else works.FULL, options.minutes, show)


def main() -> int:
    parser = options_of(
        __doc__, figures=documents.CLUSTERS, quick="everything, but small and once: about seven minutes"
    )
    return run("cluster", parser.parse_args(), documents.CLUSTERS, measure)


if __name__ == "__main__":
    sys.exit(main())
