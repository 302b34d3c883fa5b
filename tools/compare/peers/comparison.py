"""A whole comparison: long measurements once, then rounds within the time allowed; ends what it started.

Its result is stored in docs/benchmarks.json, and is the only source of the page.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import msgspec

from pandomq.bench.broker_process import BrokerProcess, PandoBroker
from pandomq.bench.run import Show
from tools.compare.peers import works
from tools.compare.peers.endurance import Endurance
from tools.compare.peers.ledger import FAST, PLAIN, RABBITMQ, Ledger
from tools.compare.peers.machine import Machine, this_machine
from tools.compare.peers.other_work import OtherWork
from tools.compare.peers.rabbit import RabbitBroker
from tools.compare.peers.rounds import Rounds


class Comparison(msgspec.Struct):
    day: str
    minutes: float
    machine: Machine
    versions: dict[str, str]
    scale: works.Scale
    ledger: Ledger
    others_share: float
    """The share of the processors that unrelated programs used."""


def compare(rounds: int, scale: works.Scale, minutes_max: float, show: Show) -> Comparison:
    """Runs the rounds; fewer, if the next would not end within the time allowed."""
    insist_on_compiled_kernel()
    others = OtherWork()
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="pandomq-peers-", ignore_cleanup_errors=True)
        brokers = _brokers(Path(stack.enter_context(temporary)))
        for broker in brokers.values():
            stack.callback(broker.close)
        begun = time.monotonic()
        ledger = Ledger()
        Endurance(brokers, scale, ledger, show).run()
        for broker in brokers.values():
            show(f"start {broker.name}", 0, 0)
            broker.start()
        _run_rounds(Rounds(brokers, scale, ledger, show), rounds, begun + minutes_max * 60)
        minutes = (time.monotonic() - begun) / 60
    return Comparison(
        day=date.today().isoformat(),
        minutes=round(minutes, 1),
        machine=this_machine(),
        versions={name: broker.version for name, broker in brokers.items()},
        scale=scale,
        ledger=ledger,
        # The brokers have ended by now, so their work counts as that of this process.
        others_share=round(others.share(), 3),
    )


def _brokers(directory: Path) -> dict[str, BrokerProcess]:
    return {
        RABBITMQ: RabbitBroker(RABBITMQ, directory / "rabbitmq"),
        FAST: PandoBroker(FAST, directory / "fast", plain=False),
        PLAIN: PandoBroker(PLAIN, directory / "plain", plain=True),
    }


def _run_rounds(turns: Rounds, rounds: int, end_s: float) -> None:
    longest_s = 0.0
    for _ in range(rounds):
        begun_s = time.monotonic()
        if begun_s + longest_s > end_s:
            break
        turns.run_one()
        longest_s = max(longest_s, time.monotonic() - begun_s)


def insist_on_compiled_kernel() -> None:
    """Without a compiled kernel the plain one would be measured silently."""
    environment = {name: value for name, value in os.environ.items() if name != "PANDOMQ_PLAIN"}
    asked = [sys.executable, "-c", "from pandomq import kernel; print(kernel.KIND)"]
    kind = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    if kind != "fast":
        raise RuntimeError("the compiled kernel is not built: run make build-kernel")
