"""`make bench-cluster`: three brokers against three of Debian's RabbitMQ; writes docs/clusters.json and the page.

Installs RabbitMQ if it is missing and this is root. As root, each broker is in a network namespace and, for faults, on
a file system of its own; otherwise what needs that is left out, and said so. Ends within the time allowed, and with it
all that it started.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from rich.console import Console

from pandomq.bench import display
from pandomq.bench.clusters import works
from pandomq.bench.clusters.comparison import compare_clusters
from pandomq.bench.peers import documents
from pandomq.bench.peers.brokers import install_rabbitmq

DOCS = Path(__file__).parent.parent / "docs"


def main() -> int:
    options = arguments()
    if not options.page:
        # Being asked to end is an exception like ^C, so that the brokers are ended on the way out.
        signal.signal(signal.SIGTERM, _interrupted)
        console = Console(stderr=True)
        try:
            install_rabbitmq()
            with display.progress(console, "clusters") as show:
                found = compare_clusters(works.QUICK if options.quick else works.FULL, options.minutes, show)
        except RuntimeError as error:
            console.print(f"bench-cluster: {error}", style="red")
            return 1
        except KeyboardInterrupt:
            console.print("bench-cluster: interrupted; nothing was written", style="red")
            return 130
        documents.write_figures(options.out / documents.CLUSTERS, found)
    sys.stdout.write(documents.write_page(options.out, DOCS))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="everything, but small and once: about five minutes")
    parser.add_argument("--minutes", type=float, default=20.0, help="no round begins that would end later (20)")
    parser.add_argument("--out", type=Path, default=DOCS, help="where clusters.json and benchmarks.md go (docs/)")
    parser.add_argument("--page", action="store_true", help="only write the page anew from the JSON")
    return parser.parse_args()


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
