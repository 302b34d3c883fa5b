"""Writers of a store that are killed at any moment: every entry that they reported as durable is in the store,
unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from pandomq.runtime.disk.disk_tools import inspect_store
from tests.integration.store_writer import Keeper, payload_of

WRITER = Path(__file__).with_name("store_writer.py")


def write_and_kill(directory: Path, seed: int, alive_s: float) -> int:
    """Returns the last durable index that the process reported."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, str(WRITER), str(directory), str(seed)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said, "the writer did not start"
    time.sleep(alive_s)
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    process.stdout.close()
    # The last line may be cut off by the kill.
    whole = (said + rest).rpartition("\n")[0].split("\n")
    return int(whole[-1])


def check(directory: Path, durable: int) -> int:
    keeper = Keeper(directory)
    recovered = keeper.recovered
    assert recovered is not None and recovered.damage is None and not recovered.flaws
    assert recovered.last_index >= durable
    for index, payload in keeper.replayed:
        assert payload == payload_of(index)
    messages = keeper.read_all()
    for number, body in messages.items():
        assert payload_of(number).endswith(body)
    last = recovered.last_index
    expected = {number for number in range(1, last + 1) if alive(number, last)}
    assert set(messages) == expected
    keeper.close()
    assert inspect_store(directory, lambda progress: None, deep=True).sound
    return last


def alive(number: int, last: int) -> bool:
    return last - number < (20 if number % 10 else 2000)


def campaign(directory: Path, rounds: int, seed: int) -> int:
    random = Random(seed)
    last = 0
    for round_number in range(rounds):
        durable = write_and_kill(directory, seed + round_number, random.uniform(0.0, 0.6))
        assert durable >= last
        last = check(directory, durable)
    return last


def test_killed_writers_lose_nothing(tmp_path: Path) -> None:
    assert campaign(tmp_path / "store", 5, seed=1) > 200


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_writers_lose_nothing_for_long(tmp_path: Path) -> None:
    campaign(tmp_path / "store", 60, seed=100)
