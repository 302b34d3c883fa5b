"""A broker, a log that commits when told to, and clients that speak to it in bytes: what these tests talk to."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from pandomq import kernel, methods
from pandomq.broker.broker import BatchOutcome, Broker, Input
from pandomq.broker.client import Client
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import AdministrativeCommand, PutPermissions, PutUser
from pandomq.errors import ConnectionFault, Fault
from pandomq.methods import Method, MethodInput
from pandomq.properties import Properties, decode_header, encode_header
from pandomq.wire import codec

NOW_MS = 1_700_000_000_000
FRAME_BYTES = 4096

GUEST = (PutUser("guest", "", "scrypt", ("administrator",)), PutPermissions("/", "guest", ".*", ".*", ".*"))
"""The user that is in every world from the start, without an entry in its log."""

Reply = TypeVar("Reply", bound=Method)


class Received(NamedTuple):
    channel: int
    method: Method
    properties: Properties | None = None
    body: bytes = b""


class World:
    """`late` is a log that commits only by `commit`."""

    def __init__(self, *, late: bool = False, limits: BrokerLimits | None = None, seed: int = 1) -> None:
        self.late = late
        self.now_ms = NOW_MS
        self.limits = limits or BrokerLimits()
        self.broker = Broker(
            node_name="n1",
            encode=codec.encode_frame,
            encode_payload=codec.encode_method,
            random=random.Random(seed),
            limits=self.limits,
        )
        self.entries: list[bytes] = []
        self.waiting: list[tuple[Client, Sequence[Input]]] = []
        """The inputs of clients behind a transaction that is not committed yet, or while the broker holds too many
        replies for them."""
        self.committed_index = 0
        self.closed: dict[Client, ConnectionFault] = {}
        for command in GUEST:
            self.broker.change(command)

    def connect(
        self,
        *,
        user: str = "guest",
        vhost: str = "/",
        notify: bool = True,
        channel_max: int = 2047,
        origin: str | None = None,
        trunk: bool = False,
    ) -> Peer:
        client = self.broker.connect(
            user=user,
            vhost=vhost,
            peer="127.0.0.1:1",
            client_properties={"capabilities": {"consumer_cancel_notify": notify}},
            frame_max=FRAME_BYTES,
            channel_max=channel_max,
            now_ms=self.now_ms,
            counted=origin is None,
            origin=origin,
            trunk=trunk,
        )
        return Peer(self, client)

    def peer(self, user: str = "guest", *, vhost: str = "/") -> Peer:
        """A client with channel 1 open."""
        peer = self.connect(user=user, vhost=vhost)
        peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
        return peer

    def administer(self, *commands: AdministrativeCommand) -> Fault | None:
        """The first fault. Otherwise all is done, and committed unless the log is late."""
        faults: list[Fault | None] = []
        for command in commands:
            self.broker.administration.submit(command, faults.append, self.now_ms)
        self.run([])
        assert self.late or len(faults) == len(commands)
        return next((fault for fault in faults if fault is not None), None)

    def admit(self, user: str, configure: str = ".*", write: str = ".*", read: str = ".*", *, vhost: str = "/") -> None:
        """A user with these permissions."""
        commands = (PutUser(user, "", "scrypt", ()), PutPermissions(vhost, user, configure, write, read))
        assert self.administer(*commands) is None

    def run(self, batch: list[tuple[Client, list[Input]]]) -> None:
        outcome = self.broker.handle([*self.waiting, *batch], self.now_ms)
        self.waiting = list(outcome.rest)
        self._finish(outcome)
        if self.waiting and not any(self._must_wait(client) for client, _ in self.waiting):
            self.run([])
        while self.broker.active:
            self._finish(self.broker.handle([], self.now_ms))

    def _must_wait(self, client: Client) -> bool:
        return client.waits or client.unwritten_bytes > self.limits.outgoing_bytes_max

    def pass_time(self, milliseconds: int) -> None:
        """Ticks at each deadline on the way, as a runtime would."""
        end_ms = self.now_ms + milliseconds
        while self.broker.next_deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.broker.next_deadline_ms)
            self.tick()
        self.now_ms = end_ms

    def tick(self) -> None:
        self._finish(self.broker.tick(self.now_ms))
        self.run([])

    def _finish(self, outcome: BatchOutcome) -> None:
        index = 0
        if outcome.proposal is not None:
            self.entries.append(outcome.proposal)
            index = len(self.entries)
        self.broker.sealed(index)
        self.closed.update(outcome.closing)
        if not self.late:
            self.commit()

    def commit(self, index: int | None = None) -> None:
        self.committed_index = len(self.entries) if index is None else index
        self.broker.committed(self.committed_index)
        if self.late and (self.broker.active or self.waiting):
            self.run([])

    def seal_removals(self) -> None:
        """The log gets the removals that wait for a later entry."""
        removals = self.broker.deferral.end()
        if removals is not None:
            self._finish(BatchOutcome(removals, ()))

    def replayed(self) -> World:
        """A fresh broker that was given the entries of this one."""
        self.seal_removals()
        other = World(limits=self.limits, seed=2)
        for index, entry in enumerate(self.entries, start=1):
            other.broker.apply(index, 1, entry)
        return other


class Peer:
    """One client. Its output goes through the kernel's scanner, as from a socket."""

    def __init__(self, world: World, client: Client) -> None:
        self.world = world
        self.client = client
        self._scanner = kernel.Scanner(FRAME_BYTES, world.limits.message_bytes_max)
        self._octets = b""
        self._pending: list[bytes] = []

    # Sending.

    def say(self, method: Method, *, channel: int = 1) -> Peer:
        """Kept back until `flush`, so that several things come in one read."""
        self._pending.append(codec.encode_frame(channel, method))
        return self

    def say_publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"x",
        properties: Properties | None = None,
        *,
        channel: int = 1,
        mandatory: bool = False,
        immediate: bool = False,
        confirmed_before: bool = False,
    ) -> Peer:
        header = encode_header(len(body), properties or Properties())
        method = methods.BasicPublish(exchange, routing_key, mandatory, immediate)
        octets = bytearray(codec.encode_content(channel, method, header, body, FRAME_BYTES))
        if confirmed_before:
            # The octet of bits is the last one of the method, whose frame has a head of seven octets.
            octets[6 + int.from_bytes(octets[3:7], "big")] |= kernel.CONFIRMED_BEFORE
        self._pending.append(bytes(octets))
        return self

    def flush(self) -> Peer:
        self.world.run([(self.client, self.take_inputs())])
        return self

    def take_inputs(self) -> list[Input]:
        """Takes the inputs that were held back, for a batch of several clients."""
        inputs: list[Input] = []
        for item in self._scanner.feed(b"".join(self._pending)):
            if isinstance(item, kernel.Frame):
                inputs.append(MethodInput(item.channel, codec.decode_method(item.payload)))
            else:
                assert not isinstance(item, kernel.ScanFault), item
                inputs.append(item)
        self._pending.clear()
        return inputs

    def send(self, *said: Method, channel: int = 1) -> Peer:
        for method in said:
            self.say(method, channel=channel)
        return self.flush()

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"x",
        properties: Properties | None = None,
        *,
        channel: int = 1,
        mandatory: bool = False,
        immediate: bool = False,
    ) -> Peer:
        self.say_publish(
            exchange, routing_key, body, properties, channel=channel, mandatory=mandatory, immediate=immediate
        )
        return self.flush()

    def leave(self) -> None:
        self.world.broker.disconnect(self.client, self.world.now_ms)
        self.world.run([])

    # Receiving.

    def hear(self) -> list[Received]:
        self._octets += self.client.session.take()
        heard: list[Received] = []
        while self._octets:
            channel, payload = self._frame(1)
            method = codec.decode_method(payload)
            if not method.has_content:
                heard.append(Received(channel, method))
                continue
            size, properties = decode_header(self._frame(2)[1])
            body = b""
            while len(body) < size:
                body += self._frame(3)[1]
            heard.append(Received(channel, method, properties, body))
        if self.world.broker.active:
            # Room in the session may let consumers go on.
            self.world.run([])
        return heard

    def _frame(self, kind: int) -> tuple[int, bytes]:
        found, channel, size = struct.unpack_from(">BHI", self._octets)
        assert found == kind
        payload = self._octets[7 : 7 + size]
        assert self._octets[7 + size] == 0xCE
        self._octets = self._octets[8 + size :]
        return channel, payload

    def heard(self) -> list[Method]:
        return [received.method for received in self.hear()]

    def call(self, method: Method, *, expect: type[Reply], channel: int = 1) -> Reply:
        """Sends, and hears exactly this answer."""
        (answer,) = self.send(method, channel=channel).hear()
        assert answer.channel == channel
        assert isinstance(answer.method, expect), answer
        return answer.method

    def refused(self, method: Method, *, channel: int = 1) -> methods.ChannelClose:
        """Sends, and hears that the channel is closed for it; opens it again."""
        close = self.call(method, expect=methods.ChannelClose, channel=channel)
        assert (close.failed_class_id, close.failed_method_id) == (method.class_id, method.method_id)
        self.reopen(channel)
        return close

    def reopen(self, channel: int = 1) -> None:
        self.send(methods.ChannelCloseOk(), channel=channel)
        self.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=channel)

    def fault(self) -> ConnectionFault:
        """Why the connection is being closed."""
        return self.world.closed[self.client]

    # Shorthand.

    def declare(self, queue: str = "q", **traits: Any) -> methods.QueueDeclareOk:
        return self.call(methods.QueueDeclare(queue, **traits), expect=methods.QueueDeclareOk)

    def counts(self, queue: str = "q") -> tuple[int, int]:
        """Ready messages and consumers."""
        answer = self.declare(queue, passive=True)
        return answer.message_count, answer.consumer_count

    def consume(self, queue: str = "q", tag: str = "t", **wishes: Any) -> str:
        self.send(methods.BasicConsume(queue, tag, **wishes))
        return tag

    def get(self, queue: str = "q", *, no_ack: bool = True) -> Received | None:
        (answer,) = self.send(methods.BasicGet(queue, no_ack)).hear()
        return None if isinstance(answer.method, methods.BasicGetEmpty) else answer

    def bodies(self) -> list[bytes]:
        """Of the deliveries heard."""
        return [received.body for received in self.hear() if isinstance(received.method, methods.BasicDeliver)]
