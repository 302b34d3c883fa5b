"""The shared parts of the tools that measure beside RabbitMQ: their options, how they end, and what they write."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rich.console import Console

from pandomq.bench import display
from pandomq.bench.run import Show
from tools.compare.clusters.comparison import ClusterComparison
from tools.compare.peers import documents
from tools.compare.peers.comparison import Comparison
from tools.compare.peers.rabbit import install_rabbitmq

DOCS = Path(__file__).parents[2] / "docs"

Measure = Callable[[argparse.Namespace, Show], Comparison | ClusterComparison]


def options_of(package: str, description: str | None, *, figures: str, quick: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=description)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument(
        "--minutes",
        type=float,
        default=20.0,
        help="Start no round that would end after this number of minutes (default 20).",
    )
    parser.add_argument(
        "--out", type=Path, default=DOCS, help=f"Directory for {figures} and benchmarks.md (default docs/)."
    )
    parser.add_argument("--page", action="store_true", help="Only write the page again from the JSON file.")
    return parser


def run(name: str, options: argparse.Namespace, figures: str, measure: Measure) -> int:
    if not options.page:
        # SIGTERM raises an exception as ^C does, so that the brokers are ended before the tool ends.
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
