"""RabbitMQ as Debian packages it: one private broker of it, and the package's installation.

Nothing here touches a broker that runs on the machine already.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pandomq.bench import process
from pandomq.bench.broker_process import BrokerProcess, free_port

RABBITMQ_SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitBroker(BrokerProcess):
    """Debian's RabbitMQ with its defaults; only names, places and ports are ours."""

    def __init__(self, name: str, directory: Path) -> None:
        super().__init__(name, directory)
        self._epmd_port = free_port()

    def command(self, directory: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        plugins = directory / "enabled_plugins"
        plugins.write_text("[].\n")
        return [str(RABBITMQ_SCRIPT)], {
            "HOME": str(directory),
            "RABBITMQ_NODENAME": f"peer{directory.name}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "none.conf"),
            "RABBITMQ_CONFIG_FILE": str(directory / "none"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "none.config"),
            # Erlang's name server would outlive the node, so this node has one of its own.
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def close(self) -> None:
        super().close()
        epmd = process.listening_pid(self._epmd_port)
        if epmd is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(epmd, signal.SIGTERM)


def install_rabbitmq() -> None:
    """Installs Debian's package, if it is missing and this user may install it."""
    if RABBITMQ_SCRIPT.exists():
        return
    if os.geteuid() != 0:
        raise RuntimeError("RabbitMQ is missing: apt-get install rabbitmq-server (as root), then try again")
    # Run level 1 keeps the package from starting a server of its own.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "rabbitmq-server"]
    subprocess.run(install, env=environment, check=True)
