"""Clients of the broker inside its own process, for requests over HTTP that mean what an AMQP method means.

A local client is one connection with one open channel and no socket. Its requests go into the node's next batch like
everything else, under its user's own rights, and the broker's answers are decoded and passed to a callback: so every
check and every text is the same as over AMQP. It is in no listing of connections.

The callback is called from within a step: it takes notes and returns. It gets the answers in order, and last a Fault if
the broker closed the channel or the connection; nothing follows that, and the owner closes the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq import limits
from pandomq.broker.containment import internal_failure
from pandomq.errors import ChannelFault, Fault
from pandomq.kernel import PublishRun, Scanner, SettleRun
from pandomq.methods import (
    BasicAck,
    BasicNack,
    BasicPublish,
    BasicReject,
    ChannelClose,
    ChannelOpen,
    ChannelOpenOk,
    Method,
    MethodInput,
)
from pandomq.node.containment import contained
from pandomq.wire.codec import (
    BODY_FRAME,
    FRAME_END,
    FRAME_START,
    HEADER_FRAME,
    decode_method,
    encode_content,
    encode_frame,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker, Input
    from pandomq.broker.client import Client
    from pandomq.node.containment import Guard
    from pandomq.node.service_state import ServiceState

CHANNEL: Final = 1
PEER: Final = "http"
"""Stands in place of other clients' addresses."""


class MethodReply(NamedTuple):
    method: Method
    header: bytes
    """The content header's payload; empty if the method has no content."""
    body: bytes


OnAnswer = Callable[[MethodReply | Fault], None]


class LocalClient:
    __slots__ = ("_client", "_clients", "_on_answer", "_scanner")

    def __init__(self, clients: LocalClients, client: Client, on_answer: OnAnswer, message_bytes_max: int) -> None:
        self._clients = clients
        self._client = client
        self._on_answer = on_answer
        self._scanner = Scanner(limits.FRAME_BYTES_MAX, message_bytes_max)

    def send(self, *methods: Method) -> None:
        """Sends a method with the next batch. A publish uses `publish`."""
        inputs: list[Input] = []
        for method in methods:
            if isinstance(method, BasicAck | BasicNack | BasicReject):
                inputs += self._scan(encode_frame(CHANNEL, method))
            else:
                inputs.append(MethodInput(CHANNEL, method))
        self._clients.gather(self._client, inputs)

    def publish(self, method: BasicPublish, header: bytes, body: bytes) -> None:
        frames = encode_content(CHANNEL, method, header, body, limits.FRAME_BYTES_MAX)
        self._clients.gather(self._client, self._scan(frames))

    def close(self, now_ms: int) -> None:
        """Its unacked messages go back to their queue. The node needs a step after this."""
        self._clients.close(self._client, now_ms)

    def take(self) -> None:
        """Takes the broker's output."""
        for answer in _answers(self._client.session.take()):
            method = answer.method
            if isinstance(method, ChannelClose):
                self.fail(ChannelFault(method.reply_code, method.reply_text))
            elif not isinstance(method, ChannelOpenOk):
                self._on_answer(answer)

    def fail(self, fault: Fault) -> None:
        self._on_answer(fault)

    def _scan(self, frames: bytes) -> list[Input]:
        inputs: list[Input] = []
        for item in self._scanner.feed(frames):
            assert isinstance(item, PublishRun | SettleRun), "our own frames are in order"
            inputs.append(item)
        return inputs


class LocalClients:
    """All local clients. The node takes its batch from here and reports their events."""

    __slots__ = ("_batch", "_broker", "_clients", "_service_state", "guard")

    guard: Guard
    """The node's guard."""

    def __init__(self, broker: Broker, service_state: ServiceState) -> None:
        self._broker = broker
        self._service_state = service_state
        self._clients: dict[Client, LocalClient] = {}
        self._batch: list[tuple[Client, list[Input]]] = []

    def open(self, *, user: str, vhost: str, on_answer: OnAnswer, now_ms: int) -> LocalClient:
        """Raises ConnectionFault: 530 if no client is served here, there is no such vhost, or the user has no access;
        541 if the broker failed."""
        refusal = self._service_state.refusal()
        if refusal is not None:
            raise refusal
        changes = self.guard.changes
        try:
            client = self._broker.connect(
                user=user,
                vhost=vhost,
                peer=PEER,
                client_properties={},
                frame_max=limits.FRAME_BYTES_MAX,
                channel_max=CHANNEL,
                now_ms=now_ms,
                counted=False,
            )
            local = LocalClient(self, client, on_answer, self._broker.limits.message_bytes_max)
        except Fault:
            raise
        except Exception as error:
            # The caller is a request over HTTP, outside of a step.
            self.guard.request_failed(error, changes)
            raise internal_failure() from None
        self._clients[client] = local
        local.send(ChannelOpen())
        return local

    def gather(self, client: Client, inputs: list[Input]) -> None:
        if client in self._clients:
            self._batch.append((client, inputs))

    @contained
    def close(self, client: Client, now_ms: int) -> None:
        if self._clients.pop(client, None) is not None:
            self._broker.disconnect(client, now_ms)

    def close_all(self, fault: Fault) -> None:
        """All of them end, and the broker with them."""
        clients, self._clients = self._clients, {}
        for local in clients.values():
            local.fail(fault)

    # Reports of the node.

    def take_batch(self) -> list[tuple[Client, list[Input]]]:
        batch, self._batch = self._batch, []
        return batch

    def wrote(self, client: Client) -> None:
        """The client's session has bytes to take."""
        local = self._clients.get(client)
        if local is not None:
            local.take()

    def failed(self, client: Client, fault: Fault) -> None:
        """The broker closes the connection."""
        local = self._clients.get(client)
        if local is not None:
            local.take()
            local.fail(fault)

    def __contains__(self, client: Client) -> bool:
        return client in self._clients

    def __len__(self) -> int:
        return len(self._clients)


def _answers(octets: bytes) -> Iterator[MethodReply]:
    """The methods in whole frames, each with its content. A session writes a content at once, so it is complete."""
    offset = 0
    method: Method | None = None
    header = b""
    body: list[bytes] = []
    while offset < len(octets):
        kind, _channel, size = FRAME_START.unpack_from(octets, offset)
        start = offset + FRAME_START.size
        payload = octets[start : start + size]
        offset = start + size + len(FRAME_END)
        if kind == HEADER_FRAME:
            header = payload
        elif kind == BODY_FRAME:
            body.append(payload)
        else:
            if method is not None:
                yield MethodReply(method, header, b"".join(body))
            method, header, body = decode_method(payload), b"", []
    if method is not None:
        yield MethodReply(method, header, b"".join(body))
