"""connection.blocked and connection.unblocked: at the memory watermark publishers are blocked, consumers continue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.client import Address, Channel, Connection
from tests.support.process import BrokerProcess

pytestmark = pytest.mark.ours_only
MESSAGE = b"m" * 50_000
ENOUGH = 60


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A broker with room for one megabyte of messages."""
    broker = BrokerProcess(tmp_path_factory.mktemp("small"), "--memory-mb", "1")
    broker.start()
    yield Address("127.0.0.1", broker.port)
    assert broker.stop() == 0
    assert "Traceback" not in broker.log_text(), broker.log_text()


def fill(channel: Channel, queue: str) -> None:
    """Publishes more than the broker has memory for, but not more than the socket's buffers take."""
    for _ in range(ENOUGH):
        channel.publish(MESSAGE, queue)


def test_a_publisher_gets_connection_blocked_and_is_held_back_until_there_is_room(small: Address) -> None:
    writer, reader = Connection.opened(small), Connection.opened(small)
    sending, reading = writer.channel(), reader.channel()
    queue = sending.declare_queue("blocked", exclusive=False)
    fill(sending, queue)
    assert writer.expect("connection.blocked").reason
    reading.consume(queue, no_ack=True)
    for _ in range(ENOUGH):
        assert reading.delivery().body == MESSAGE
    writer.expect("connection.unblocked")
    sending.expect_nothing()
    sending.rpc("queue.delete", queue=queue)
    writer.close()
    reader.close()


def test_a_client_that_does_not_know_the_method_is_held_back_in_silence(small: Address) -> None:
    writer = Connection.opened(small, client_properties={"capabilities": {}})
    reader = Connection.opened(small)
    sending, reading = writer.channel(), reader.channel()
    queue = sending.declare_queue("blocked", exclusive=False)
    fill(sending, queue)
    reading.consume(queue, no_ack=True)
    assert len(reading.bodies(ENOUGH)) == ENOUGH
    sending.expect_nothing()
    sending.rpc("queue.delete", queue=queue)
    assert all(channel for _, channel, _ in writer.frames_seen[3:]), "nothing was said on channel 0"
    writer.close()
    reader.close()


def test_connections_that_only_consume_go_on(small: Address) -> None:
    writer, reader = Connection.opened(small), Connection.opened(small)
    sending, reading = writer.channel(), reader.channel()
    queue = sending.declare_queue("blocked", exclusive=False)
    fill(sending, queue)
    writer.expect("connection.blocked")
    assert reading.declare_queue("another", exclusive=True) == "another"
    found = reading.get(queue)
    assert found is not None
    assert found.body == MESSAGE
    reading.rpc("queue.purge", queue=queue)
    reading.consume(queue, no_ack=True)
    writer.expect("connection.unblocked")
    sending.rpc("queue.delete", queue=queue)
    writer.close()
    reader.drop()
