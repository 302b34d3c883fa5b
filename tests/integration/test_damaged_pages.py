"""A page of messages that is damaged on the disk: the broker names it, and `store repair` gives it up, but keeps its
bytes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pika
import pytest
from typer.testing import CliRunner

from pandomq.cli.store import store_app
from tests.support.process import BrokerProcess

from .waiting import PATIENCE_S

COUNT = 3000


def publish(broker: BrokerProcess) -> None:
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    channel.tx_select()
    for number in range(COUNT):
        body = b"%d " % number + bytes(500)
        channel.basic_publish("", "q", body, pika.BasicProperties(delivery_mode=2))
    channel.tx_commit()
    connection.close()


def numbers(broker: BrokerProcess) -> list[int]:
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
    channel = connection.channel()
    count = channel.queue_declare("q", passive=True).method.message_count
    bodies = channel.consume("q", auto_ack=True, inactivity_timeout=PATIENCE_S)
    found = [int(body.split()[0]) for _, _, body in islice(bodies, count)]
    assert channel.queue_declare("q", passive=True).method.message_count == 0
    connection.close()
    return found


@pytest.mark.timeout(120)
def test_repair_gives_up_a_damaged_page_and_keeps_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_LIMITS_PAGING_BYTES", "256KiB")
    broker = BrokerProcess(tmp_path)
    broker.start()
    publish(broker)
    assert broker.stop() == 0
    (page_file,) = tmp_path.rglob("pages-*.page")
    content = bytearray(page_file.read_bytes())
    content[len(content) // 2] ^= 1
    page_file.write_bytes(content)
    store = page_file.parent

    found = CliRunner().invoke(store_app, ["verify", str(store)])
    assert found.exit_code == 1 and f"damaged: {page_file.name}" in found.output.replace("\n", "")
    repaired = CliRunner().invoke(store_app, ["repair", str(store)])
    assert repaired.exit_code == 0, repaired.output
    assert "given up: 1 damaged pages of messages" in repaired.output.replace("\n", " ")
    (aside,) = store.glob("aside-*")
    assert aside.stat().st_size > 4000
    assert CliRunner().invoke(store_app, ["verify", str(store)]).exit_code == 0

    broker.start()
    left = numbers(broker)
    assert broker.stop() == 0
    assert left == sorted(left) and COUNT - 200 < len(left) < COUNT
