"""Compares the processor time that a message costs in two builds of the broker, in turn.

    python -m tools.compare.builds OTHER_TREE [--rounds 10] [--seconds 3]

Each round starts a broker of the other tree and one of this tree, runs the same loads against both with this tree's
load generator, and notes the broker's processor time per message. The result is the median over the rounds of this
tree's time divided by the other's. The compiled kernel must be built in both trees, and the machine should be quiet.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from pandomq.bench.broker_process import PandoBroker
from pandomq.bench.load import Load
from pandomq.bench.run import measure

LOADS: Final[Mapping[str, Load]] = {
    "flood, 16 B, transient": Load(url="", size_bytes=16),
    "flood, 1 KiB, acks": Load(url="", size_bytes=1024, auto_ack=False, ack_every=100, prefetch=1000),
    "flood, 1 KiB, persistent, confirms": Load(
        url="",
        size_bytes=1024,
        persistent=True,
        durable=True,
        confirm_window=1000,
        auto_ack=False,
        ack_every=100,
        prefetch=1000,
    ),
    "2,000/s, 1 KiB, persistent, confirms": Load(
        url="",
        size_bytes=1024,
        persistent=True,
        durable=True,
        confirm_window=1000,
        auto_ack=False,
        ack_every=1,
        prefetch=100,
        rate=2_000,
    ),
    "2,000/s, 1 KiB, transient": Load(url="", size_bytes=1024, auto_ack=False, ack_every=1, prefetch=100, rate=2_000),
}


class Build(PandoBroker):
    """A broker of one source tree."""

    def __init__(self, name: str, tree: Path, directory: Path) -> None:
        super().__init__(name, directory, plain=False)
        self._tree = tree

    def command(self, directory: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        command, variables = super().command(directory)
        return command, {**variables, "PYTHONPATH": str(self._tree / "src")}


def cost_us(build: Build, load: Load) -> float:
    build.start()
    try:
        found = measure(msgspec.structs.replace(load, url=build.url), pid=build.pid)
    finally:
        build.close()
    assert found.broker_cpu_us is not None
    return found.broker_cpu_us


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="The source tree to compare with.")
    parser.add_argument("--rounds", type=int, default=10, help="Number of rounds (default 10).")
    parser.add_argument("--seconds", type=float, default=3.0, help="Duration of each load in seconds (default 3).")
    parser.add_argument("--only", default="", help="Run only the loads whose names contain this text.")
    options = parser.parse_args()
    own_tree = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as directory:
        other, own = (
            Build(name, tree, Path(directory) / name) for name, tree in (("other", options.other), ("own", own_tree))
        )
        print(f"{'load':38} {'other µs':>9} {'own µs':>9} {'ratio':>7}")
        for name, load in LOADS.items():
            if options.only not in name:
                continue
            load = msgspec.structs.replace(load, duration_s=options.seconds)
            rounds = []
            for number in range(options.rounds):
                # The order changes in each round, so that neither build always runs on the warmer machine.
                pair = (other, own) if number % 2 else (own, other)
                costs = {build.name: cost_us(build, load) for build in pair}
                rounds.append((costs["other"], costs["own"]))
            ratio = statistics.median(own_us / other_us for other_us, own_us in rounds)
            middle = [statistics.median(column) for column in zip(*rounds, strict=True)]
            print(f"{name:38} {middle[0]:9.2f} {middle[1]:9.2f} {ratio:7.3f}", flush=True)


if __name__ == "__main__":
    main()
