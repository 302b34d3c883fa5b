"""A running broker that restarts its state after an unexpected exception."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pandomq.limits import STOP_MS_MAX
from tests.support.client import Address, Connection
from tests.support.closing import ClosedByBrokerError
from tests.support.http import NO_TLS
from tests.support.ports import free_port
from tests.support.process import BrokerProcess

from . import poisoned_broker
from .waiting import wait_until

LOGIN = ("guest", "guest")
CHECKS = (
    *("readyz", "api/health/ready", "api/health/root", "api/health/clients"),
    *("api/health/checks/alarms", "api/health/checks/local-alarms", "api/health/checks/virtual-hosts"),
    *("api/health/checks/is-in-service", "api/health/checks/protocol-listener/amqp091"),
    *("api/health/checks/node-is-quorum-critical", "api/aliveness-test/%2F"),
)


class PoisonedBroker(BrokerProcess):
    def __init__(self, directory: Path, rest_s: float) -> None:
        self.http_port = free_port()
        super().__init__(directory, "--http", f"127.0.0.1:{self.http_port}")
        module = self._command.index("pandomq.cli.main")
        self._command[module : module + 1] = [poisoned_broker.__name__, str(rest_s)]

    def status_of(self, path: str) -> int:
        url = f"http://127.0.0.1:{self.http_port}/{path}"
        return httpx.get(url, auth=LOGIN, timeout=10.0, verify=NO_TLS).status_code

    def poison(self) -> None:
        """Returns once the client that requested it was answered."""
        channel = Connection.opened(Address("127.0.0.1", self.port)).channel()
        with pytest.raises(ClosedByBrokerError) as closed:
            channel.rpc("queue.declare", queue=poisoned_broker.POISON, durable=True)
        assert closed.value.method.reply_code == 541
        channel.connection.drop()


@pytest.fixture
def poisoned(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PoisonedBroker]:
    broker = PoisonedBroker(tmp_path, request.param)
    broker.start()
    try:
        yield broker
    finally:
        if broker.alive:
            broker.kill()


@pytest.mark.proves("R38")
@pytest.mark.parametrize("poisoned", [4.0], indirect=True)
def test_health_checks_fail_until_the_state_was_restarted(poisoned: PoisonedBroker) -> None:
    address = Address("127.0.0.1", poisoned.port)
    channel = Connection.opened(address).channel()
    channel.declare_queue("q", exclusive=False, durable=True)
    channel.rpc("confirm.select")
    channel.publish_confirmed(b"safe", routing_key="q", delivery_mode=2)
    assert {path: poisoned.status_of(path) for path in CHECKS} == dict.fromkeys(CHECKS, 200)
    poisoned.poison()
    assert {path: poisoned.status_of(path) for path in CHECKS} == dict.fromkeys(CHECKS, 503)
    assert poisoned.status_of("healthz") == 200
    with pytest.raises(ClosedByBrokerError) as closed:
        channel.rpc("queue.declare", queue="q", durable=True)
    assert closed.value.method.reply_code == 320
    channel.connection.drop()
    wait_until(lambda: poisoned.status_of("readyz") == 200, "a broker that is ready again")
    assert {path: poisoned.status_of(path) for path in CHECKS} == dict.fromkeys(CHECKS, 200)
    again = Connection.opened(address)
    assert again.channel().drain("q") == [b"safe"]
    again.close()
    assert poisoned.log_text().count("Traceback (most recent call last)") == 1
    assert poisoned.stop() == 0


@pytest.mark.proves("R38")
@pytest.mark.parametrize("poisoned", [600.0], indirect=True)
def test_a_broker_that_waits_for_the_restart_of_its_state_can_be_stopped(poisoned: PoisonedBroker) -> None:
    poisoned.poison()
    assert poisoned.status_of("readyz") == 503
    began = time.monotonic()
    assert poisoned.stop() == 0
    assert time.monotonic() - began < STOP_MS_MAX / 1000
