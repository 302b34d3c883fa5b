"""Incomplete messages count towards the memory watermark, and cannot exceed their part of it."""

from __future__ import annotations

from random import Random

from pandomq import limits
from pandomq.broker.log.commands import (
    ForgetLease,
    LeaseMessages,
    NoteSequences,
    PutLease,
    ReleaseLeased,
    SequenceNotes,
)
from pandomq.broker.staging.names import StagingAttempt
from pandomq.errors import ChannelFault
from pandomq.methods import BasicPublish, QueueDeclare, QueuePurge, TxSelect
from pandomq.node.clients.local_client import LocalClient
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings, broker_limits
from pandomq.properties import Properties, encode_header
from tests.fuzz.node_world import NOWHERE, NodeWorld
from tests.support.client import Connection
from tests.support.fields import content_header
from tests.support.frames import BODY as BODY_FRAME
from tests.support.frames import HEADER as HEADER_FRAME
from tests.unit.broker.staging_scene import frames
from tests.unit.node.data.data_port import DataPort, encode

NOW_MS = 1_000_000
BODY = b"x" * 10_000
HEADER = encode_header(len(BODY), Properties())
MEMORY_BYTES = 16 * len(BODY) * 10


def run(node: Node) -> None:
    while node.step(NOW_MS).more:
        pass


def opened(node: Node, heard: list[object]) -> LocalClient:
    return node.local_clients.open(user="guest", vhost="/", on_answer=heard.append, now_ms=NOW_MS)


def test_eight_uncommitted_transactions_of_one_user_take_a_bounded_part_of_memory() -> None:
    node = Node(NodeSettings(password_log_cost=2, memory_bytes_max=MEMORY_BYTES), Random(1), NOW_MS)
    heard: list[object] = []
    clients = [opened(node, heard) for _ in range(8)]
    for client in clients:
        client.send(TxSelect())
        for _ in range(4):
            client.publish(BasicPublish("amq.fanout", "", False, False), HEADER, BODY)
    run(node)
    most = MEMORY_BYTES // limits.TRANSACTION_MEMORY_PARTS // 2
    assert node.broker.limits.transaction_per_user_bytes_max == most
    assert 0 < node.broker.uncommitted.size_bytes <= most
    faults = [answer for answer in heard if isinstance(answer, ChannelFault)]
    assert len(faults) == 4
    assert all(fault.reply_code == 406 and "transaction_per_user_bytes_max" in fault.reply_text for fault in faults)


def test_uncommitted_transactions_count_towards_the_watermark() -> None:
    node = Node(NodeSettings(password_log_cost=2, memory_bytes_max=MEMORY_BYTES), Random(1), NOW_MS)
    heard: list[object] = []
    plain, transacted = opened(node, heard), opened(node, heard)
    plain.send(QueueDeclare("q", False, False, False, False, False, {}))
    for _ in range(150):
        plain.publish(BasicPublish("", "q", False, False), HEADER, BODY)
    transacted.send(TxSelect())
    run(node)
    assert node._pressure.reason is None
    for _ in range(15):
        transacted.publish(BasicPublish("amq.fanout", "", False, False), HEADER, BODY)
    run(node)
    assert node._pressure.reason == "low on memory"


def test_staged_parts_count_towards_the_watermark() -> None:
    node = Node(NodeSettings(password_log_cost=2, memory_bytes_max=MEMORY_BYTES), Random(1), NOW_MS)
    run(node)
    vhost = node.broker.state.vhosts["/"]
    part = frames("x" * (MEMORY_BYTES // 4), exchange="amq.fanout")
    for number in range(4):
        assert node._pressure.reason is None
        attempt = StagingAttempt(0, 0, "a", "w")
        node.broker.staging.stage(vhost, vhost.access["guest"], attempt, number, part, lambda _: None, NOW_MS)
        run(node)
    assert node._pressure.reason == "low on memory"


def test_named_producers_stored_offsets_and_leases_count_towards_the_watermark_up_to_a_half_of_it() -> None:
    node = Node(NodeSettings(password_log_cost=2, memory_bytes_max=MEMORY_BYTES), Random(1), NOW_MS)
    heard: list[object] = []
    plain = opened(node, heard)
    plain.send(QueueDeclare("q", False, False, False, False, False, {}))
    for _ in range(90):
        plain.publish(BasicPublish("", "q", False, False), HEADER, BODY)
    run(node)
    state = node.broker.state
    assert (node._pressure.reason, state.tables_bytes) == (None, 0)
    gaps = [bound for number in range(0, 1_000, 2) for bound in (number, number)]
    names = [str(number) for number in range(30)]
    for name in names:
        state.apply(NoteSequences(NOW_MS, [SequenceNotes("/", name, 1, gaps, [], [], "guest")]))
    for lease in range(100):
        state.apply(PutLease("/", "q", str(lease), 0, 1_000))
    state.apply(LeaseMessages("/", "q", "0", [(number, 1, 0, 0, 1, 0) for number in range(0, 1_000, 2)]))
    assert state.tables_bytes > MEMORY_BYTES
    run(node)
    assert node._pressure.reason == "low on memory"
    # Publishers that are held back make no room in the tables: those alone do not hold them back.
    plain.send(QueuePurge("q"))
    run(node)
    assert node._pressure.reason is None
    state.apply(ReleaseLeased("/", "q", "0", 500))
    state.apply(NoteSequences(NOW_MS, [], [], [("/", "guest", name) for name in names]))
    for lease in range(100):
        state.apply(ForgetLease("/", "q", str(lease)))
    assert state.tables_bytes == 0


def watched_bytes(node: Node) -> int:
    """Returns the bytes, beside messages, that are compared with the watermark."""
    return node.data.held_bytes + node._links.incomplete.total_bytes


def test_messages_that_have_arrived_in_part_count_towards_the_watermark() -> None:
    world = NodeWorld(Random(0), NodeSettings(memory_bytes_max=16 * limits.MIB, message_bytes_max=limits.MIB))
    channel = Connection.opened(NOWHERE, stream=world.connect()).channel()
    channel.send("basic.publish", routing_key="nowhere")
    channel.connection.send_frame(HEADER_FRAME, channel.number, content_header(limits.MIB, {}))
    for _ in range(8):
        channel.connection.send_frame(BODY_FRAME, channel.number, bytes(64 * limits.KIB))
    assert watched_bytes(world.node) >= limits.MIB // 2
    channel.connection.drop()


def test_requests_to_the_data_port_count_towards_the_watermark() -> None:
    port = DataPort()
    octets = encode({"ask": "streams", "pattern": ".*"}, bytes(2**22))
    client = port.known()
    client.say_octets(octets[:-1])
    assert watched_bytes(port.node) >= 2**22
    client.say_octets(octets[-1:])
    assert client.answer() == {"streams": []}
    assert watched_bytes(port.node) == 0


def test_shares_of_users_follow_the_watermark() -> None:
    small = broker_limits(NodeSettings(memory_bytes_max=80))
    assert (small.transactions_bytes_max, small.transaction_per_user_bytes_max) == (20, 10)
    large = broker_limits(NodeSettings(memory_bytes_max=2**40))
    assert large.transaction_per_user_bytes_max == limits.TRANSACTION_PER_USER_BYTES_MAX
    unlimited = broker_limits(NodeSettings(memory_bytes_max=80, transaction_per_user_bytes_max=0))
    assert unlimited.transaction_per_user_bytes_max == 10
