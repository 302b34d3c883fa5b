"""Nodes over a simulated disk, one process after the other, and clients without sockets."""

from __future__ import annotations

from random import Random

from pandomq.broker.broker import Broker
from pandomq.broker.client import Client
from pandomq.errors import Fault
from pandomq.ids import ClusterId, NodeName
from pandomq.journal.effects import Request
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.kernel import Scanner
from pandomq.methods import (
    BasicConsume,
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicPublish,
    ChannelOpen,
    ConfirmSelect,
    Method,
    MethodInput,
)
from pandomq.node.clients.local_client import MethodReply
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from pandomq.properties import Properties, encode_header
from pandomq.sim.disks.disk import SimDisk
from pandomq.wire.codec import encode_content

CLUSTER = ClusterId("00000000-0000-4000-8000-000000000001")
SMALL = JournalSettings(
    segment_bytes=64 * 1024,
    snapshot_log_bytes=128 * 1024,
    disk_free_bytes_min=0,
    reserve_bytes=0,
    page_file_bytes=32 * 1024,
)


PERSISTENT = Properties(delivery_mode=2)
TRANSIENT = Properties()


class Life:
    """One process with that disk, until it stops or is stopped."""

    def __init__(self, disk: SimDisk, start_ms: int, paging_bytes: int = 0, page_messages: int = 20) -> None:
        self.disk = disk
        self.now_ms = start_ms
        self.journal = Journal(SMALL, node_name=NodeName("n1"), new_cluster_id=CLUSTER)
        self.node = Node(NodeSettings(paging_bytes=paging_bytes), Random(1), start_ms, self.journal)
        self.node.broker.engine.page_messages = page_messages
        self.requests: list[Request] = []
        """All that was ever asked of the disk."""
        self.until(lambda: self.node.ready)

    @property
    def broker(self) -> Broker:
        return self.node.broker

    def turn(self) -> None:
        output = self.node.step(self.now_ms)
        self.requests += output.disk
        self.disk.submit(list(output.disk), self.now_ms)
        self.now_ms += 1
        completions = self.disk.take_completions(self.now_ms)
        if completions:
            self.node.disk_completed(completions, self.now_ms)
        self.node.tick(self.now_ms)

    def until(self, fulfilled: object, turns: int = 100_000) -> None:
        assert callable(fulfilled)
        for _ in range(turns):
            if fulfilled():
                return
            self.turn()
        raise AssertionError("it did not come to that")

    def stop(self) -> None:
        self.node.shut_down(self.now_ms)
        self.node.close()
        self.until(lambda: self.node.closed)


class Publisher:
    def __init__(self, life: Life) -> None:
        self.life = life
        self.client: Client = life.broker.connect(
            user="guest", vhost="/", peer="p", client_properties={}, frame_max=4096, channel_max=9, now_ms=life.now_ms
        )
        self._scanner = Scanner(4096, 1 << 20)
        self.say(ChannelOpen())
        self.say(ConfirmSelect(False))

    def say(self, method: Method) -> None:
        self.life.node._input_router.gather(self.client, [MethodInput(1, method)])
        self.life.turn()

    def publish(self, queue: str, body: bytes, properties: Properties = PERSISTENT) -> None:
        header = encode_header(len(body), properties)
        octets = encode_content(1, BasicPublish("", queue), header, body, 4096)
        self.life.node._input_router.gather(self.client, list(self._scanner.feed(octets)))

    @property
    def confirmed(self) -> int:
        channel = self.client.channels[1].kernel
        return channel.published_count - channel.unconfirmed_count


class Reader:
    """Takes messages out of queues, by a consumer or one by one."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.answers: list[MethodReply] = []
        self._local = life.node.local_clients.open(user="guest", vhost="/", on_answer=self._hear, now_ms=life.now_ms)

    def _hear(self, answer: MethodReply | Fault) -> None:
        assert isinstance(answer, MethodReply), answer
        self.answers.append(answer)

    def say(self, *methods: Method) -> None:
        self._local.send(*methods)

    def consume(self, queue: str) -> None:
        self.say(BasicConsume(queue, no_ack=True))

    @property
    def delivered(self) -> list[bytes]:
        return [answer.body for answer in self.answers if isinstance(answer.method, BasicDeliver)]

    @property
    def redelivered(self) -> list[bool]:
        return [answer.method.redelivered for answer in self.answers if isinstance(answer.method, BasicDeliver)]

    def get(self, queue: str) -> bytes | None:
        count = len(self.answers)
        self.say(BasicGet(queue, no_ack=True))
        self.life.until(lambda: len(self.answers) > count, turns=1000)
        answer = self.answers[-1]
        assert isinstance(answer.method, BasicGetOk | BasicGetEmpty)
        return answer.body if isinstance(answer.method, BasicGetOk) else None

    def close(self) -> None:
        self._local.close(self.life.now_ms)
        self.life.turn()
