"""A fixed number of inputs on one fresh node, all of it determined by (seed, epoch).

Checked all the time: no exception, no endless step, the node's output consists of whole and valid frames, and a
well-behaved client is served as always. Checked at the end: once the hostile connections are closed and their queues
deleted, nothing is left of them.
"""

from __future__ import annotations

import time
from hashlib import blake2b
from random import Random

from pandomq.broker import client_views, views
from pandomq.fieldtable import encode_table
from tests.fuzz.cases import OPENING, Case, Source
from tests.fuzz.conversations import Conversation, record
from tests.fuzz.methods import furniture
from tests.fuzz.node_world import NOWHERE, NodeSocket, NodeWorld
from tests.fuzz.tally import FuzzFailure, Tally
from tests.fuzz.written import Written
from tests.support.client import Connection
from tests.support.frames import METHOD, frame
from tests.support.methods import encode

SOCKETS_MAX = 8
PROBE_EVERY = 100
SLOW_S = 5.0
"""A single input that keeps the node busy for longer counts as a hang."""


def recorded_corpus() -> list[Conversation]:
    world = NodeWorld(Random(0))
    return record(lambda: Connection(NOWHERE, world.connect()))


class Epoch:
    def __init__(self, seed: int, number: int, corpus: list[Conversation]) -> None:
        self._random = Random(f"{seed}/{number}")
        self._source = Source(self._random, corpus)
        self._world = NodeWorld(Random(f"{seed}/{number}/node"))
        self._open: list[NodeSocket] = []
        self._written: dict[NodeSocket, Written] = {}
        self._baseline = self._inventory()
        self.tally = Tally()
        self._hash = blake2b(digest_size=16)

    def run(self, inputs: int) -> Tally:
        case: Case | None = None
        number = 0
        try:
            for number in range(inputs):
                socket, case = self._next()
                self._apply(socket, case)
                if number % PROBE_EVERY == 0:
                    self._probe()
            case = None
            self._end()
        except FuzzFailure:
            raise
        except Exception as error:
            raise FuzzFailure(f"{type(error).__name__}: {error}", case, number) from error
        return self.tally

    def _apply(self, socket: NodeSocket, case: Case) -> None:
        begin = time.perf_counter()
        for segment in case.segments():
            if not socket.open:
                break
            self._world.send(socket, segment)
            if case.pieces != 1:
                self._world.settle()
        self._world.settle()
        self._disturb(socket)
        self._read_all()
        spent_s = time.perf_counter() - begin
        self.tally.inputs += 1
        self.tally.kinds[case.kind] += 1
        self.tally.slowest_ms = max(self.tally.slowest_ms, spent_s * 1000)
        assert spent_s < SLOW_S, f"one input took {spent_s:.1f} s"

    def _next(self) -> tuple[NodeSocket, Case]:
        chance = self._random.random()
        self._open = [socket for socket in self._open if self._lives(socket)]
        if chance < 0.08:
            return self._connect(), self._source.early()
        if chance < 0.4:
            # Connections that live longer continue in the state that earlier inputs left; a mutated input ends most of
            # them.
            socket = self._opened() if self._random.random() < 0.8 else self._living()
            return socket, self._source.spoiled()
        socket = self._opened() if self._random.random() < 0.1 else self._living()
        return socket, self._source.methods(self._written[socket].tags)

    def _connect(self) -> NodeSocket:
        socket = self._world.connect()
        self._written[socket] = Written(self.tally)
        return socket

    def _opened(self) -> NodeSocket:
        if len(self._open) >= SOCKETS_MAX:
            self._world.hang_up(self._open.pop(self._random.randrange(len(self._open))))
        socket = self._connect()
        self._world.send(socket, OPENING + (furniture() if self._random.random() < 0.5 else b""))
        self._world.settle()
        self._open.append(socket)
        return socket

    def _lives(self, socket: NodeSocket) -> bool:
        """Whether it is of further use; the broker's closes are usually answered at the end."""
        if socket.open and 0 in self._written[socket].closed_channels:
            if self._random.random() < 0.8:
                self._world.send(socket, frame(METHOD, 0, encode("connection.close-ok")))
                self._world.settle()
            return False
        return socket.open

    def _living(self) -> NodeSocket:
        if not self._open:
            return self._opened()
        socket = self._random.choice(self._open)
        self._reopen_channels(socket)
        return socket

    def _reopen_channels(self, socket: NodeSocket) -> None:
        """Answers closes, so that not all of the following methods are ignored."""
        closed = self._written[socket].closed_channels
        for channel in closed - {0}:
            for name in ("channel.close-ok", "channel.open"):
                self._world.send(socket, frame(METHOD, channel, encode(name)))
        self._world.settle()
        closed.clear()

    def _disturb(self, socket: NodeSocket) -> None:
        """Time passes, readers stall and continue, clients disconnect."""
        random = self._random
        chance = random.random()
        if chance < 0.05:
            self._world.pass_time(random.choice([1, 10, 60, 200, 130_000]))
        elif chance < 0.08 and socket.open:
            self._world.node.pause(socket.link)
        elif chance < 0.12:
            for stalled in self._open:
                if stalled.open:
                    self._world.node.resume(stalled.link)
        elif chance < 0.16:
            self._world.hang_up(socket)
        self._world.settle()

    def _read_all(self) -> None:
        for socket in list(self._written):
            if socket.written:
                self._hash.update(socket.written)
                self._written[socket].take(bytes(socket.written))
                socket.written.clear()
            if not socket.open:
                del self._written[socket]

    def _probe(self) -> None:
        """Checks a legal client."""
        client = self._world.client()
        channel = client.channel()
        queue = channel.declare_queue("")
        channel.publish("probe", queue)
        found = channel.get(queue, no_ack=False)
        assert found is not None, "the probe's message is missing"
        assert found.body == b"probe"
        channel.send("basic.ack", delivery_tag=found.delivery_tag)
        channel.rpc("queue.delete", queue=queue, if_empty=True)
        client.close()

    def _end(self) -> None:
        for socket in list(self._world.sockets):
            self._world.hang_up(socket)
        self._world.settle()
        client = self._world.client()
        channel = client.channel()
        # Auto-delete exchanges may be deleted by themselves meanwhile; deleting a missing object is no error.
        for queue in list(views.queues(self._world.node.broker)):
            channel.rpc("queue.delete", queue=queue.name)
        for exchange in list(views.exchanges(self._world.node.broker)):
            if exchange.name and not exchange.name.startswith("amq."):
                channel.rpc("exchange.delete", exchange=exchange.name)
        for binding in list(views.bindings(self._world.node.broker)):
            ends = {"source": binding.source, "destination": binding.destination}
            arguments = encode_table(binding.arguments)
            channel.rpc("exchange.unbind", **ends, routing_key=binding.routing_key, arguments=arguments)
        client.close()
        self._world.settle()
        # The node contains exceptions: it would close one client, and continue.
        assert not self._world.node.guard.errors, f"exceptions: {self._world.node.guard.errors}"
        left = self._inventory()
        assert left == self._baseline, f"left behind: {left}, at the start: {self._baseline}"
        self.tally.bytes_in, self.tally.bytes_out = self._world.bytes_in, self._world.bytes_out
        self.tally.digest = self._hash.digest()

    def _inventory(self) -> dict[str, int]:
        node, broker = self._world.node, self._world.node.broker
        return {
            "links": node.link_count,
            "connections": len(list(client_views.connections(broker))),
            "channels": len(list(client_views.channels(broker))),
            "consumers": len(list(client_views.consumers(broker))),
            "queues": len(list(views.queues(broker))),
            "exchanges": len(list(views.exchanges(broker))),
            "bindings": len(list(views.bindings(broker))),
            "messages": broker.engine.held_messages,
            "bytes": broker.engine.held_bytes,
        }
