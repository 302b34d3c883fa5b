"""`pandomq start` from a shell: configuration, log, signals, and its output when it cannot start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from pika.exceptions import AMQPConnectionError, ProbableAuthenticationError

from tests.support.ports import free_port

pytestmark = pytest.mark.only_ours("it is the command that starts ours")

PATIENCE_S = 20.0


class Started:
    """One `pandomq start` in a directory of its own, with its standard error in a file."""

    def __init__(self, directory: Path, *options: str, **environment: str) -> None:
        self.port = free_port()
        self._error = directory / "stderr"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PANDOMQ_")}
        kept = {"PANDOMQ_PLAIN": os.environ["PANDOMQ_PLAIN"]} if "PANDOMQ_PLAIN" in os.environ else {}
        with self._error.open("wb") as error:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "pandomq.cli.main",
                    "start",
                    "--listen",
                    f"127.0.0.1:{self.port}",
                    "--http",
                    "off",
                    *options,
                ],
                cwd=directory,
                env={**clean, **kept, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=error,
            )

    @property
    def words(self) -> str:
        return self._error.read_text()

    def wait_for(self, words: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while words not in self.words:
            assert self.process.poll() is None, f"it ended:\n{self.words}"
            assert time.monotonic() < deadline, f"no word of {words!r}:\n{self.words}"
            time.sleep(0.05)

    def connect(self, user: str = "guest", password: str = "guest") -> pika.BlockingConnection:
        credentials = pika.PlainCredentials(user, password)
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port, credentials=credentials))

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Started]]:
    all_started: list[Started] = []
    yield all_started
    for one in all_started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait(PATIENCE_S)


def test_the_file_the_environment_and_options_make_one_broker(tmp_path: Path, started: list[Started]) -> None:
    (tmp_path / "secret").write_text("hush\n")
    (tmp_path / "pandomq.toml").write_text(
        """
        [node]
        name = "from-file"
        compat_product = "PandoMQ"
        log_format = "json"
        [limits]
        frame_bytes_max = "8KiB"
        heartbeat_s = 17
        [auth]
        default_user = "ann"
        default_password_file = "secret"
        """
    )
    broker = Started(
        tmp_path, "--heartbeat", "19", PANDOMQ_LIMITS_CHANNEL_MAX="11", PANDOMQ_NODE_NAME="from-environment"
    )
    started.append(broker)
    broker.wait_for("ready on")
    connection = broker.connect("ann", "hush")
    tuned = connection._impl.params
    assert connection._impl.server_properties["product"] == "PandoMQ"
    assert (tuned.frame_max, tuned.heartbeat, tuned.channel_max) == (8192, 19, 11)
    with pytest.raises(ProbableAuthenticationError):
        broker.connect("ann", "wrong secret")
    connection.close()
    assert (tmp_path / "pandomq-data" / "from-environment" / "pid").exists()
    assert broker.stop() == 0
    events = [json.loads(line) for line in broker.words.splitlines()]
    assert all({"time", "level", "message"} <= event.keys() for event in events)
    assert any(f"ready on amqp://127.0.0.1:{broker.port}" in event["message"] for event in events)
    assert "hush" not in broker.words
    assert "wrong secret" not in broker.words


def test_sighup_reads_limits_again_and_refuses_nonsense(tmp_path: Path, started: list[Started]) -> None:
    file = tmp_path / "pandomq.toml"
    file.write_text("[limits]\nchannel_max = 10\n")
    broker = Started(tmp_path)
    started.append(broker)
    broker.wait_for("ready on")
    file.write_text("[limits]\nchannel_max = 20\n")
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for("certificates and settings were reloaded")
    with broker.connect() as connection:
        assert connection._impl.params.channel_max == 20
    file.write_text("[limits]\nchanel_max = 30\n")
    broker.process.send_signal(signal.SIGHUP)
    broker.wait_for("certificates and settings were not reloaded")
    assert "did you mean channel_max?" in broker.words
    with broker.connect() as connection:
        assert connection._impl.params.channel_max == 20
    assert broker.stop() == 0


def test_a_wrong_configuration_ends_with_2_and_one_line_for_each_problem(
    tmp_path: Path, started: list[Started]
) -> None:
    (tmp_path / "pandomq.toml").write_text("[cluster]\nkey_file = 'x'\n[limits]\nchannel_max = 0\n")
    broker = Started(tmp_path)
    started.append(broker)
    assert broker.process.wait(PATIENCE_S) == 2
    assert [line.partition(":")[0] for line in broker.words.splitlines()] == ["pandomq", "pandomq"]
    assert not (tmp_path / "pandomq-data").exists()


@pytest.mark.parametrize("option", ["--listen", "--http"])
def test_a_port_in_use_is_named_with_a_remedy(tmp_path: Path, started: list[Started], option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = f"127.0.0.1:{other.getsockname()[1]}"
        broker = Started(tmp_path, option, place)
        started.append(broker)
        assert broker.process.wait(PATIENCE_S) == 1
    assert broker.words == (
        f"pandomq: cannot start broker n1 on {place}: Address already in use. "
        f"Another program listens on this address: stop it, or choose another {option}.\n"
    )


def test_a_missing_certificate_is_named(tmp_path: Path, started: list[Started]) -> None:
    (tmp_path / "pandomq.toml").write_text(
        '[node.tls]\nlisten = "127.0.0.1:0"\ncertificate = "tls/absent.pem"\nkey = "tls/absent.key"\n'
    )
    broker = Started(tmp_path)
    started.append(broker)
    assert broker.process.wait(PATIENCE_S) == 1
    assert "tls/absent.pem" in broker.words
    assert "Traceback" not in broker.words


def test_guest_with_a_password_of_its_own(tmp_path: Path, started: list[Started]) -> None:
    broker = Started(tmp_path, PANDOMQ_AUTH_DEFAULT_PASSWORD="other")
    started.append(broker)
    broker.wait_for("ready on")
    broker.connect("guest", "other").close()
    with pytest.raises(AMQPConnectionError):
        broker.connect("guest", "guest")
    assert broker.stop() == 0
