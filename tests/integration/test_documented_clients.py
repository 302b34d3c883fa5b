"""The examples of docs/clients.md and docs/deduplication.md, run as they stand, with another port."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .broker_under_test import BrokerUnderTest, Names
from .conftest import NODE_DIRECTORY

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "clients.md"
EXAMPLE = re.compile(r"^## ([\w-]+)$.*?^```(python|javascript)$\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 30


def examples() -> dict[str, str]:
    return {client: code for client, _, code in EXAMPLE.findall(PAGE.read_text())}


def run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def at(broker: BrokerUnderTest, code: str) -> str:
    """Returns the example with this broker's address."""
    assert "localhost:5672" in code
    return code.replace("localhost:5672", f"{broker.host}:{broker.port}")


@pytest.fixture
def hello(names: Names) -> str:
    names._queues.append("hello")
    names._exchanges.append("hello")
    return "hello"


@pytest.mark.parametrize("client", ["pika", "aio-pika", "kombu"])
def test_python_example(broker: BrokerUnderTest, hello: str, client: str) -> None:
    output = run([sys.executable, "-c", at(broker, examples()[client])])
    assert hello in output.lower()


def test_amqplib_example(node: str, broker: BrokerUnderTest, hello: str) -> None:
    environment = {**os.environ, "NODE_PATH": str(NODE_DIRECTORY / "node_modules")}
    assert run([node, "-e", at(broker, examples()["amqplib"])], env=environment) == "Hello World!\n"


def test_celery_example(broker: BrokerUnderTest, tmp_path: Path) -> None:
    """The application loads and connects to the broker; other tests run tasks."""
    (tmp_path / "hello.py").write_text(at(broker, examples()["Celery"]))
    check = "import hello; hello.app.connection().ensure_connection(max_retries=1); print(hello.add.name)"
    assert run([sys.executable, "-c", check], cwd=tmp_path) == "hello.add\n"


def test_every_client_has_an_example() -> None:
    assert set(examples()) == {"pika", "aio-pika", "kombu", "Celery", "amqplib"}


@pytest.mark.only_ours("no other broker knows these headers")
def test_example_of_numbered_messages(broker: BrokerUnderTest, names: Names) -> None:
    names._queues.append("orders")
    code = re.search(r"^```python$\n(.*?)^```$", (DOCS / "deduplication.md").read_text(), re.MULTILINE | re.DOTALL)
    assert code is not None
    assert run([sys.executable, "-c", at(broker, code[1])]) == "3\n"
