"""Running brokers with bystanders, for the hostile client: one broker alone, or three and a secondary."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from tests.fuzz.live.attack import ADMINISTRATOR, BYSTANDER, MALLORY, Attack, Harmed, LogWatch, Target, administer
from tests.fuzz.live.bystanders import BystanderProcess
from tests.integration.cluster.under_test import ClusterUnderTest
from tests.integration.waiting import wait_until
from tests.support.client import Address
from tests.support.http import NO_TLS
from tests.support.ports import free_port
from tests.support.process import BrokerProcess

MEMORY_DIRECTORY: Final = Path("/dev/shm")
"""Another process's writes to the disk would delay the bystanders."""
OnProgress = Callable[[int], None]
Batch = tuple[str, int]
"""A surface, and the number of a batch."""
ERRORS_ONLY: Final = {"node": {"log_level": "error"}}


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    place = MEMORY_DIRECTORY if os.access(MEMORY_DIRECTORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pandomq-fuzz-", dir=place) as made:
        yield Path(made)


def fuzz_one_broker(
    seed: int,
    wanted: dict[str, int],
    on_progress: Callable[[int], None] = lambda _: None,
    only: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """Raises Harmed. `only` is one batch, which is sent alone."""
    with directory() as place:
        http_port = free_port()
        broker = BrokerProcess(place, "--http", f"127.0.0.1:{http_port}", "--log-level", "error")
        broker.start()
        try:
            target = _target("broker", "127.0.0.1", broker.port, http_port)
            everywhere = [Address("127.0.0.1", broker.port, *BYSTANDER[:2])] * 3

            def harm() -> str | None:
                return None if broker.alive else f"the broker ended:\n{broker.log_text()[-6000:]}"

            watch = LogWatch([broker.log])
            result = _fuzz(seed, wanted, [target], everywhere, [broker.pid], watch, harm, on_progress, only)
        except BaseException:
            broker.kill()
            raise
        code = broker.stop()
        if code != 0 or watch.look() is not None:
            raise Harmed(f"the broker ended with {code}:\n{broker.log_text()[-6000:]}", [])
        return result


def fuzz_cluster(
    seed: int,
    wanted: dict[str, int],
    on_progress: Callable[[int], None] = lambda _: None,
    only: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """A backup and the secondary are attacked; the bystanders are clients of the same brokers. Raises Harmed."""
    with directory() as place:
        cluster = ClusterUnderTest(place, "backup")
        for broker in cluster.brokers:
            broker.configure(ERRORS_ONLY)
        try:
            cluster.start()
            backup, secondary = cluster.choose(), cluster.brokers[-1]
            attacked = [backup, secondary]
            targets = [
                _target(backup.name, backup.host, backup.port, backup.http_port),
                Target(secondary.name, secondary.host, secondary.port, 0, secondary.http_port),
            ]
            at_backup, at_secondary = (Address(one.host, one.port, *BYSTANDER[:2]) for one in attacked)

            def harm() -> str | None:
                ended = [one for one in cluster.brokers if not one.alive]
                return f"{ended[0].name} ended:\n{ended[0].tail}" if ended else None

            logs = LogWatch([one.directory / "log" for one in cluster.brokers])
            addresses = [at_backup, at_secondary, at_backup]
            pids = [one.pid for one in cluster.brokers]
            return _fuzz(seed, wanted, targets, addresses, pids, logs, harm, on_progress, only)
        finally:
            cluster.end()


def _fuzz(
    seed: int,
    wanted: dict[str, int],
    targets: list[Target],
    addresses: list[Address],
    pids: list[int],
    logs: LogWatch,
    harm: Callable[[], str | None],
    on_progress: OnProgress,
    only: Batch | None,
) -> dict[str, Any]:
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    administer(targets[0], "PUT", "users/bystander", {"password": BYSTANDER.password, "tags": ""})
    administer(targets[0], "PUT", "permissions/%2F/bystander", everything)
    administer(targets[0], "PUT", "users/mallory", {"password": MALLORY.password, "tags": "management"})
    first = addresses[0]
    data_url = f"amqp://{first.user}:{quote(first.password)}@{first.host}:{first.port}/%2F"
    bystanders = BystanderProcess(addresses, data_url, pids)
    try:
        attack = Attack(seed, targets, logs, lambda: harm() or bystanders.harm)
        if only is None:
            counted = attack.run(wanted, on_progress)
        else:
            attack.refresh()
            attack.send(*only)
            counted = attack.counted
        account = bystanders.end()
        if account["failures"] or (reason := harm() or logs.look()):
            raise Harmed("; ".join(account["failures"]) or str(reason), attack.last_batches)
        return {
            "inputs": counted.inputs,
            "handled": dict(counted.handled),
            "sent": dict(counted.sent),
            "batches": dict(counted.batches),
            "bytes_in": counted.bytes_in,
            "bytes_out": counted.bytes_out,
            "bystanders": account,
            "longest_pass_s": {one.name: _longest_pass_s(one) for one in targets},
        }
    finally:
        bystanders.kill()


def _longest_pass_s(target: Target) -> float:
    """Returns the longest pass of the broker's event loop, in wall-clock time."""
    page = httpx.get(f"http://{target.host}:{target.http_port}/metrics", timeout=30.0, verify=NO_TLS).text
    found = re.search(r"^pandomq_loop_pass_seconds_max(?:{.*})? ([0-9.e+-]+)", page, re.MULTILINE)
    return float(found[1]) if found else -1.0


def _target(name: str, host: str, amqp_port: int, http_port: int) -> Target:
    """Its data port is among the listeners that it reports."""
    found: list[int] = []

    def listens() -> bool:
        try:
            answer = httpx.get(
                f"http://{host}:{http_port}/api/overview", auth=ADMINISTRATOR[:2], timeout=30.0, verify=NO_TLS
            )
        except httpx.TransportError:
            return False
        listeners = answer.json().get("listeners", []) if answer.status_code == 200 else []
        found[:] = [one["port"] for one in listeners if one["protocol"] == "data"]
        return bool(found)

    wait_until(listens, f"the data port of {name}")
    return Target(name, host, amqp_port, found[0], http_port)
