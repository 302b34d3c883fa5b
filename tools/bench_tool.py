"""What the tools that measure beside RabbitMQ share: their options, how they end, and what they write."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rich.console import Console

from pandomq.bench import display
from pandomq.bench.clusters.comparison import ClusterComparison
from pandomq.bench.peers import documents
from pandomq.bench.peers.brokers import install_rabbitmq
from pandomq.bench.peers.comparison import Comparison
from pandomq.bench.run import Show

DOCS = Path(__file__).parent.parent / "docs"

Measure = Callable[[argparse.Namespace, Show], Comparison | ClusterComparison]


def options_of(description: str | None, *, figures: str, quick: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--minutes", type=float, default=20.0, help="no round begins that would end later (20)")
    parser.add_argument("--out", type=Path, default=DOCS, help=f"where {figures} and benchmarks.md go (docs/)")
    parser.add_argument("--page", action="store_true", help="only write the page anew from the JSON")
    return parser


def run(name: str, options: argparse.Namespace, figures: str, measure: Measure) -> int:
    if not options.page:
        # Being asked to end is an exception like ^C, so that the brokers are ended on the way out.
        signal.signal(signal.SIGTERM, _interrupted)
        console = Console(stderr=True)
        try:
            install_rabbitmq()
            with display.progress(console, name) as show:
                found = measure(options, show)
        except RuntimeError as error:
            console.print(f"bench-{name}: {error}", style="red")
            return 1
        except KeyboardInterrupt:
            console.print(f"bench-{name}: interrupted; nothing was written", style="red")
            return 130
        documents.write_figures(options.out / figures, found)
    sys.stdout.write(documents.write_page(options.out, DOCS))
    return 0


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
