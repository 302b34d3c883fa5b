"""The recipes of docs/failover.md, as they stand: each publishes and consumes while the root, its broker, is killed or
frozen.

Only the addresses and the login are replaced. Every message arrives, at least once, without help from the test.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.integration.conftest import NODE_DIRECTORY, node_client
from tests.integration.waiting import wait_until
from tests.support.markdown import Key, block

from .cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PAGE: Final = Path(__file__).parents[3] / "docs" / "failover.md"
COUNT: Final = 1500
BEFORE_THE_KILL: Final = 20
PATIENCE_S: Final = 150.0
"""Celery takes nearly two minutes if its broker is frozen."""
LOGIN: Final = "user:password@"
DONE: Final = "published all of them"
HANDLED: Final = re.compile(r"handled (\d+)")

THREADS: Final = f"""
import threading

threading.Thread(target=consume, args=[lambda body: print("handled", bytes(body).decode(), flush=True)]).start()
publish([str(number).encode() for number in range({COUNT})])
print("{DONE}", flush=True)
"""
TEXTS: Final = f"""
import threading

threading.Thread(target=consume, args=[lambda body: print("handled", body, flush=True)]).start()
publish([str(number) for number in range({COUNT})])
print("{DONE}", flush=True)
"""
COROUTINES: Final = f"""
async def main():
    consuming = asyncio.create_task(consume(lambda body: print("handled", body.decode(), flush=True)))
    await publish([str(number).encode() for number in range({COUNT})])
    print("{DONE}", flush=True)
    await consuming


asyncio.run(main())
"""
TASKS: Final = f"""
import subprocess, sys

options = "-A recipe worker --without-mingle --without-gossip --pool solo -l INFO".split()
worker = subprocess.Popen([sys.executable, "-m", "celery", *options])
from recipe import handle

for number in range({COUNT}):
    handle.delay(number)
print("{DONE}", flush=True)
worker.wait()
"""
PROMISES: Final = f"""
consume((body) => console.log(`handled ${{body}}`));
publish(Array.from({{ length: {COUNT} }}, (_, number) => Buffer.from(String(number)))).then(() => {{
  console.log('{DONE}');
}});
"""
PYTHON: Final[dict[Key, str]] = {
    ("pika", 1): THREADS,
    ("aio-pika", 1): COROUTINES,
    ("kombu", 1): TEXTS,
}
NODE: Final[dict[Key, tuple[str, str]]] = {
    ("amqplib", 1): ("amqplib", PROMISES),
    ("amqp-client.js", 1): ("@cloudamqp/amqp-client", PROMISES),
}
CELERY: Final[Key] = ("Celery", 1)
KILLED: Final = "killed"
FROZEN: Final = "frozen"
FAULTS: Final = (KILLED, FROZEN)


def recipe(cluster: Cluster, key: Key) -> str:
    """The block of the page. Its first address is that of the root, so that the recipe begins there."""
    code = block(PAGE, key).text
    for number, broker in enumerate([cluster.root, *cluster.backups], 1):
        login_and_address = broker.url.removeprefix("amqp://").removesuffix("/%2F")
        assert f"{LOGIN}h{number}" in code
        code = code.replace(f"{LOGIN}h{number}", login_and_address)
    return code


@contextmanager
def running(command: list[str], directory: Path, **environment: str) -> Iterator[Path]:
    """Yields the file with the output of the program, and ends the program with all that it has started."""
    clean = {name: text for name, text in os.environ.items() if name != "PYTHONWARNINGS"}
    output = directory / "output"
    with output.open("wb") as file:
        program = subprocess.Popen(
            command,
            cwd=directory,
            env={**clean, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield output
        assert program.poll() is None, output.read_text()
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def check_without_the_root(cluster: Cluster, output: Path, fault: str) -> None:
    def handled() -> set[int]:
        return set(map(int, HANDLED.findall(output.read_text(errors="replace"))))

    def wait(condition: Callable[[], object], what: str) -> None:
        try:
            wait_until(condition, what, PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; {len(handled())} handled\n{output.read_text()[-3000:]}") from None

    wait(lambda: len(handled()) >= BEFORE_THE_KILL, "the first messages")
    root = cluster.root
    root.kill() if fault == KILLED else root.freeze()
    try:
        assert DONE not in output.read_text(), "the recipe was done before the root failed"
        wait(lambda: DONE in output.read_text(), "the publisher's end")
        wait(lambda: handled() == set(range(COUNT)), "all messages")
    finally:
        if fault == FROZEN:
            root.thaw()


@pytest.fixture(autouse=True)
def no_orders(proxies: Cluster) -> None:
    with proxies.connect() as connection:
        for queue in ("orders", "celery"):
            connection.channel().queue_delete(queue)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("key", PYTHON, ids=str)
def test_python(proxies: Cluster, key: Key, fault: str, tmp_path: Path) -> None:
    program = recipe(proxies, key) + PYTHON[key]
    with running([sys.executable, "-c", program], tmp_path) as output:
        check_without_the_root(proxies, output, fault)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("key", NODE, ids=str)
def test_node(proxies: Cluster, key: Key, fault: str, tmp_path: Path) -> None:
    package, driver = NODE[key]
    command = [node_client(package), "-e", recipe(proxies, key) + driver]
    with running(command, tmp_path, NODE_PATH=str(NODE_DIRECTORY / "node_modules")) as output:
        check_without_the_root(proxies, output, fault)


@pytest.mark.parametrize("fault", FAULTS)
def test_celery(proxies: Cluster, fault: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.py").write_text(recipe(proxies, CELERY))
    with running([sys.executable, "-c", TASKS], tmp_path) as output:
        check_without_the_root(proxies, output, fault)
