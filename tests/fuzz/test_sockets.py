"""A few hundred hostile inputs over TCP to a broker of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.sockets import SocketFuzz
from tests.support.client import Address
from tests.support.process import BrokerProcess


@pytest.mark.timeout(120)
def test_a_running_broker_survives_and_serves_others_meanwhile(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, "--log-level", "error")
    broker.start()
    try:
        run = SocketFuzz(20_240_229, Address("127.0.0.1", broker.port), broker.pid)
        assert run.run(800).inputs == 800
        assert broker.alive
    finally:
        code = broker.stop()
    assert code == 0
    assert "Traceback" not in broker.log_text(), broker.log_text()
