"""`make bench-cluster`: three brokers against three of Debian's RabbitMQ; writes docs/clusters.json and the page.

Installs RabbitMQ if it is missing and the user is root. As root, each broker is in a network namespace and, for faults,
on a file system of its own; otherwise the cases that need these are left out, and the output says so. The tool ends
within its time limit, and ends everything that it started.
"""

from __future__ import annotations

import argparse
import sys

from pandomq.bench.run import Show
from tools.compare.clusters import works
from tools.compare.clusters.comparison import ClusterComparison, compare_clusters
from tools.compare.command import options_of, run
from tools.compare.peers import documents


def measure(options: argparse.Namespace, show: Show) -> ClusterComparison:
    return compare_clusters(works.QUICK if options.quick else works.FULL, options.minutes, show)


def main() -> int:
    parser = options_of(
        "tools.compare.clusters",
        __doc__,
        figures=documents.CLUSTERS,
        quick="Measure everything once, with small loads, in about seven minutes.",
    )
    return run("cluster", parser.parse_args(), documents.CLUSTERS, measure)


if __name__ == "__main__":
    sys.exit(main())
