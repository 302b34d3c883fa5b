"""`make demo`: one broker made of several, under load, with jobs on Spark; kill -9 of the root in the middle.

Publishers, consumers of shared queues, subscribers with private queues and readers of a stream are on every broker,
also on a secondary that joins while they work. It ends with an account of every message and a report in HTML. The demo
ends everything that it starts: brokers, clients, jobs, the directory. The exit code is 0 only if the account balances
and no job found an error.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console

from tools.demo.display import print_account, print_jobs
from tools.demo.grove import DemoFailed, Grove, grove
from tools.demo.jobs import jobs
from tools.demo.report import page
from tools.demo.run import Run
from tools.demo.story import Story

REPORT = Path("demo-report.html")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="Duration of publishing in seconds (default 30).")
    parser.add_argument("--publishers", type=int, default=3, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--consumers", type=int, default=3, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--rate", type=int, default=500, help="Messages per second, over all publishers (default 500).")
    parser.add_argument("--report", type=Path, default=REPORT, help="Path of the report (default demo-report.html).")
    parser.add_argument("--without-spark", action="store_true", help="Run brokers and clients only, without Spark.")
    parser.add_argument(
        "--deaf",
        action="store_true",
        help="Make one subscriber ignore its messages, to see that the message accounting reports it.",
    )
    return parser.parse_args()


def play_it(options: argparse.Namespace, console: Console) -> bool:
    """Runs the whole demo; returns whether it was successful."""
    story = Story()
    with tempfile.TemporaryDirectory(prefix="pandomq-demo-") as directory:
        console.print("Starting three brokers…", highlight=False)
        with grove(Path(directory)) as brokers:
            introduce(brokers, options, console)
            brokers.declare()
            brokers.trace()
            with nullcontext() if options.without_spark else jobs(Path(directory), brokers) as spark:
                run = Run(brokers, spark, story, options, Path(directory), console)
                account = run.to_its_end()
    summaries = spark.summaries if spark else []
    options.report.write_text(page(story, account, summaries))
    print_account(account, console)
    if spark:
        print_jobs(summaries, spark.taken_s, console)
    console.print(f"Wrote the report to {options.report.resolve()}", highlight=False, markup=False, soft_wrap=True)
    return account.balances() and all(summary.good for summary in summaries)


def introduce(brokers: Grove, options: argparse.Namespace, console: Console) -> None:
    console.print(
        f"They listen on {', '.join(member.place.amqp for member in brokers.cluster.members)}. "
        f"{options.publishers} publishers and {options.consumers} consumers (pika) share three queues; "
        "each broker has a subscriber with a private one; all messages are also in a stream"
        f"{'' if options.without_spark else ', which Spark archives'}. "
        "A secondary will join, with clients of its own.",
        highlight=False,
    )


def main() -> int:
    options = parse_options()
    console = Console()
    # SIGTERM ends the demo like ^C, so that it cleans up; ^C is enabled, too, in case the shell has it ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        return 0 if play_it(options, console) else 1
    except DemoFailed as failure:
        console.print(f"The demo failed: {failure}", highlight=False, markup=False)
        return 2
    except KeyboardInterrupt:
        console.print("Interrupted.")
        return 130


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
