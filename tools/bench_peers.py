"""`make bench-peers`: PandoMQ against Debian's RabbitMQ on this machine; writes docs/benchmarks.json and the page.

Installs RabbitMQ if it is missing and this is root. Ends within the time allowed, and with it the brokers it started.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from rich.console import Console

from pandomq.bench import display
from pandomq.bench.peers import documents, works
from pandomq.bench.peers.brokers import install_rabbitmq
from pandomq.bench.peers.comparison import compare

DOCS = Path(__file__).parent.parent / "docs"


def main() -> int:
    options = arguments()
    if not options.page:
        # Being asked to end is an exception like ^C, so that the brokers are ended on the way out.
        signal.signal(signal.SIGTERM, _interrupted)
        console = Console(stderr=True)
        rounds, scale = (1, works.QUICK) if options.quick else (options.rounds, works.FULL)
        try:
            install_rabbitmq()
            with display.progress(console, "peers") as show:
                comparison = compare(rounds, scale, options.minutes, show)
        except RuntimeError as error:
            console.print(f"bench-peers: {error}", style="red")
            return 1
        except KeyboardInterrupt:
            console.print("bench-peers: interrupted; nothing was written", style="red")
            return 130
        documents.write_figures(options.out / documents.ONE_BROKER, comparison)
    sys.stdout.write(documents.write_page(options.out, DOCS))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="everything, but small: about three minutes")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; medians are reported (5)")
    parser.add_argument("--minutes", type=float, default=20.0, help="no round begins that would end later (20)")
    parser.add_argument("--out", type=Path, default=DOCS, help="where benchmarks.json and benchmarks.md go (docs/)")
    parser.add_argument("--page", action="store_true", help="only write the page anew from the JSON")
    return parser.parse_args()


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
