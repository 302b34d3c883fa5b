"""A few thousand hostile inputs to a node in this process; `make fuzz` has the million."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.cases import Source
from tests.fuzz.conversations import Conversation
from tests.fuzz.epoch import Epoch, recorded_corpus

SEED = 20_240_229
FOUND = [(393_496_261, 1414), (1_445_095_810, 1691)]
"""Seeds and epochs in which `make fuzz` once found an error."""
ROOT = Path(__file__).parent.parent.parent
ONE_EPOCH = """
import logging
from tests.fuzz.epoch import Epoch, recorded_corpus
logging.disable(logging.CRITICAL)
print(Epoch({seed}, {epoch}, recorded_corpus()).run({inputs}).digest.hex())
"""


@pytest.fixture(scope="module")
def corpus() -> list[Conversation]:
    return recorded_corpus()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The node logs every refusal, of which there are thousands here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("epoch", range(8))
def test_hostile_inputs_harm_no_other_client_and_leave_nothing_behind(corpus: list[Conversation], epoch: int) -> None:
    tally = Epoch(SEED, epoch, corpus).run(400)
    assert tally.inputs == 400
    assert tally.closes["501 connection.close"] > 0, "not one of the inputs was hostile"
    assert tally.methods_seen["basic.deliver"] > 0, "nothing got as far as a delivery"


@pytest.mark.parametrize(("seed", "epoch"), FOUND)
def test_epochs_that_once_failed_pass(corpus: list[Conversation], seed: int, epoch: int) -> None:
    assert Epoch(seed, epoch, corpus).run(500).inputs == 500


def test_a_seed_gives_the_same_inputs_and_the_same_answers(corpus: list[Conversation]) -> None:
    digests = {Epoch(SEED, 99, corpus).run(150).digest for _ in range(2)}
    assert len(digests) == 1
    inputs = [[source.early(), source.spoiled(), source.methods({})] for source in (Source(Random(3), corpus),) * 2]
    assert inputs[0] != inputs[1]
    again = Source(Random(3), corpus)
    assert [again.early(), again.spoiled(), again.methods({})] == inputs[0]


@pytest.mark.skipif(importlib.util.find_spec("pandomq.kernel._fast") is None, reason="the kernel is not compiled")
def test_both_kernels_write_the_same_bytes() -> None:
    program = ONE_EPOCH.format(seed=SEED, epoch=7, inputs=400)
    digests = set()
    for plain in ("", "1"):
        environment = {**os.environ, "PANDOMQ_PLAIN": plain, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=ROOT, check=True, capture_output=True, text=True
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1, digests
