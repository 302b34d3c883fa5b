"""The brokers of the cluster, and how each is started."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from pandomq.cli.config.data_port import PORTS
from pandomq.cli.config.sources import read_secret
from pandomq.cli.failures import RequestRejected, WrongUse

HOST: Final = "127.0.0.1"
PORT_MAX: Final = 65535
KEY_FILE: Final = "cluster.key"
_DATA_PORT_STEP: Final = min(data - amqp for amqp, data in PORTS.items())
"""From AMQP's port to the data port that belongs to it."""
_OF_ONE_BROKER: Final = ("PANDOMQ_NODE_", "PANDOMQ_CLUSTER_")
_OF_ALL: Final = (
    "PANDOMQ_NODE_LOG_LEVEL",
    "PANDOMQ_NODE_LOG_FORMAT",
    "PANDOMQ_NODE_COMPAT_PRODUCT",
    "PANDOMQ_CLUSTER_ACCESS",
    "PANDOMQ_CLUSTER_MIN_COPIES",
    "PANDOMQ_CLUSTER_LAST_MAN_STANDING",
    "PANDOMQ_CLUSTER_LEASE_MS",
    "PANDOMQ_CLUSTER_DISK_STALL_MS",
)
"""Variables about a broker or its cluster that have the same meaning for each of them."""


class PlannedBroker(msgspec.Struct, frozen=True):
    """One broker of the plan."""

    name: str
    primary: bool
    port: int
    http_port: int
    data: Path

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def http(self) -> str:
        return f"{HOST}:{self.http_port}"

    @property
    def log(self) -> Path:
        return self.data / "log"

    @property
    def pid_file(self) -> Path:
        return self.data / "pid"


class ClusterPlan(msgspec.Struct, frozen=True, kw_only=True):
    primaries: int
    secondaries: int
    port: int
    http_port: int
    data: Path
    config: Path | None = None

    def places(self) -> list[PlannedBroker]:
        """Primaries first, then secondaries. Raises WrongUse."""
        count = self.primaries + self.secondaries
        if max(self.port, self.http_port) + count - 1 > PORT_MAX:
            raise WrongUse(
                f"{count} brokers with ports from {self.port} and {self.http_port} on need ports above {PORT_MAX}: "
                "choose lower ports"
            )
        if abs(self.port - self.http_port) < count:
            raise WrongUse(
                f"--port {self.port} and --http-port {self.http_port} overlap for {count} brokers: choose ports "
                f"that are at least {count} apart"
            )
        return [
            PlannedBroker(f"n{i + 1}", i < self.primaries, self.port + i, self.http_port + i, self.data / f"n{i + 1}")
            for i in range(count)
        ]

    def command(self, place: PlannedBroker) -> list[str]:
        words = [sys.executable, "-m", "pandomq.cli.main", "start", "--name", place.name, "--data", str(place.data)]
        words += ["--listen", place.address, "--http", place.http]
        if self.config is not None:
            words += ["--config", str(self.config)]
        if not place.primary:
            words += ["--join", ",".join(one.address for one in self.places() if one.primary)]
        return words

    def environment(self, place: PlannedBroker, inherited: Mapping[str, str]) -> dict[str, str]:
        kept = {
            name: value for name, value in inherited.items() if name in _OF_ALL or not name.startswith(_OF_ONE_BROKER)
        }
        kept["PANDOMQ_CLUSTER_KEY_FILE"] = str(self.key_file)
        if self.primaries + self.secondaries > _DATA_PORT_STEP:
            # Otherwise the first broker's data port would be the AMQP port of another one.
            kept["PANDOMQ_DATA_LISTEN"] = f"{HOST}:0"
        if place.primary:
            kept["PANDOMQ_CLUSTER_PRIMARIES"] = ",".join(
                f"{one.name}={one.address}" for one in self.places() if one.primary
            )
        return kept

    @property
    def key_file(self) -> Path:
        return (self.data / KEY_FILE).absolute()

    def read_key(self) -> bytes:
        """Raises Refused."""
        try:
            return read_secret(self.key_file).encode()
        except ValueError as error:
            raise RequestRejected(str(error)) from None

    def make_key(self) -> bool:
        """True if there was none. Raises Refused."""
        try:
            self.data.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return False
        except OSError as error:
            raise RequestRejected(f"cannot write {self.key_file}: {error.strerror}") from None
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{secrets.token_hex(32)}\n")
        return True
