"""Files that compute and files that wait for brokers run beside each other."""

from __future__ import annotations

from tests.support.order import COMPUTING_WORKER, next_file

FILES = ["tests/integration/test_restart.py", "tests/sim/test_logs.py", "tests/spec/test_tx.py", "tests/unit/test_a.py"]


def test_a_process_takes_the_next_file_of_its_kind() -> None:
    assert next_file(FILES, COMPUTING_WORKER) == "tests/sim/test_logs.py"
    assert next_file(FILES, "gw1") == next_file(FILES, "gw2") == "tests/integration/test_restart.py"


def test_a_process_takes_the_other_kind_when_its_own_is_done() -> None:
    assert next_file(FILES[::2], COMPUTING_WORKER) == "tests/integration/test_restart.py"
    assert next_file(FILES[1::2], "gw1") == "tests/sim/test_logs.py"
