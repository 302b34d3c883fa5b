"""`pandomq store backup`: a copy that was made beside a broker under load is a store, with all confirmed messages."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandomq.cli.store import store_app
from tests.integration.waiting import wait_until_async
from tests.support.process import BrokerProcess

from .killing import TRANSACTION_MESSAGES, WHOLE, WORK, Load, Promises, drain
from .store_writer import Keeper
from .test_store_kill import WRITER, check

LOAD_S = 3.0


def backup(*arguments: object) -> Result:
    return CliRunner().invoke(store_app, ["backup", *map(str, arguments)])


def make(directory: Path, entries: int) -> None:
    keeper = Keeper(directory)
    for _ in range(entries // 20):
        keeper.append(20)
    while keeper.journal.durable_index < keeper.journal.last_index:
        keeper.wait()
    keeper.close()


def test_copies_beside_a_writer_hold_the_durable_entries(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, str(WRITER), str(tmp_path / "store"), "7"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert writer.stdout is not None
    said = [int(writer.stdout.readline())]
    reader = threading.Thread(target=lambda: said.extend(int(line) for line in writer.stdout or () if line[-1] == "\n"))
    reader.start()
    try:
        durable = []
        for number in range(6):
            durable.append(said[-1])
            done = backup(tmp_path / "store", tmp_path / f"copy-{number}", "--json")
            assert done.exit_code == 0, done.output
            assert json.loads(done.stdout)["last_index"] >= durable[-1]
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()
        reader.join()
        writer.stdout.close()
    for number in range(6):
        check(tmp_path / f"copy-{number}", durable[number])


async def load_and_back_up(broker: BrokerProcess, promises: Promises, target: Path) -> Promises:
    """Returns the promises at the start of the copy; `acked` has the messages that may have been acked before its
    end."""
    backed_up = asyncio.Event()
    load = asyncio.create_task(Load(broker, promises).run(broker, LOAD_S, until=backed_up.is_set))
    await wait_until_async(lambda: len(promises.confirmed) > 100 and len(promises.committed) > 2, "some load")
    before = Promises()
    before.confirmed |= promises.confirmed
    before.proven |= promises.proven
    before.committed |= promises.committed
    command = [sys.executable, "-m", "pandomq.cli.main", "store", "backup", str(broker.directory / "data"), str(target)]
    backing_up = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    words, _ = await backing_up.communicate()
    assert backing_up.returncode == 0 and b"no damage; entries up to" in words
    before.acked |= promises.acked
    backed_up.set()
    await load
    return before


def test_a_broker_starts_from_a_copy_that_was_made_under_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_LOG_SEGMENT_BYTES", "256KiB")
    monkeypatch.setenv("PANDOMQ_LOG_SNAPSHOT_BYTES", "512KiB")
    monkeypatch.setenv("PANDOMQ_LIMITS_PAGING_BYTES", "64KiB")
    (tmp_path / "first").mkdir()
    broker = BrokerProcess(tmp_path / "first")
    broker.start()
    before = asyncio.run(load_and_back_up(broker, Promises(), tmp_path / "second" / "data"))
    copy = BrokerProcess(tmp_path / "second")
    copy.start()
    left = {body for body, _ in drain(copy, WORK)}
    whole = [name for name, _ in drain(copy, WHOLE)]
    assert copy.stop() == 0
    assert before.confirmed - before.acked <= left
    assert not before.proven & left
    assert before.committed <= set(whole)
    assert {whole.count(name) for name in whole} <= {TRANSACTION_MESSAGES}


def test_a_store_that_is_not_in_use_is_copied_without_damage(tmp_path: Path) -> None:
    make(tmp_path / "n1" / "store", 400)
    unwanted = tmp_path / "n1" / "store" / "pages-000000000999.page"
    unwanted.write_bytes(bytes(512))
    done = backup(tmp_path / "n1", tmp_path / "copy")
    assert done.exit_code == 0
    assert "no damage; entries up to 400 of broker n1" in done.stdout.replace("\n", "")
    files = {path.name for path in (tmp_path / "copy").iterdir()}
    kept = {path.name for path in (tmp_path / "n1" / "store").iterdir()} - {"lock", "reserve", unwanted.name}
    assert files == kept
    check(tmp_path / "copy", 400)


def test_directories_that_cannot_be_backed_up_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "store", 20)
    nothing = backup(tmp_path / "missing", tmp_path / "copy")
    assert nothing.exit_code == 2 and "is not a directory" in nothing.output
    (tmp_path / "empty").mkdir()
    nothing = backup(tmp_path / "empty", tmp_path / "copy")
    assert nothing.exit_code == 2 and "contains no store" in nothing.output
    occupied = backup(tmp_path / "store", tmp_path / "store")
    assert occupied.exit_code == 2 and "is not empty" in occupied.output
    (tmp_path / "file").write_text("")
    impossible = backup(tmp_path / "store", tmp_path / "file" / "copy")
    assert impossible.exit_code == 2 and "cannot use" in impossible.output


def test_an_unfinished_copy_is_not_taken_for_a_store(tmp_path: Path) -> None:
    make(tmp_path / "store", 20)
    assert backup(tmp_path / "store", tmp_path / "copy").exit_code == 0
    (tmp_path / "copy" / "state").unlink()
    found = CliRunner().invoke(store_app, ["inspect", str(tmp_path / "copy")])
    assert "state is missing from a store that has entries" in " ".join(found.stdout.split())


def test_damage_of_the_store_is_named(tmp_path: Path) -> None:
    make(tmp_path / "store", 100)
    segment = sorted((tmp_path / "store").glob("segment-*"))[0]
    content = bytearray(segment.read_bytes())
    content[40_000] ^= 1
    segment.write_bytes(content)
    bad = backup(tmp_path / "store", tmp_path / "copy")
    words = " ".join(bad.output.split())
    assert bad.exit_code == 2
    assert "has the same damage as the original store" in words and f"{segment.name} at offset" in words
    # The copy can be repaired, too.
    assert CliRunner().invoke(store_app, ["repair", str(tmp_path / "copy")]).exit_code == 0
    assert CliRunner().invoke(store_app, ["verify", str(tmp_path / "copy")]).exit_code == 0
