"""Requests over HTTP that are passed on over the links between brokers: sent, received, and answered.

The runtime passes its requests to `ask`; requests from other brokers go to `on_request` with a way to reply. Both are
called from within a step: they take notes and return. A link that goes down ends the requests under way on it; whether
a request had its effect is not known then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq.cluster.hello import PASSED_REQUESTS_VERSION
from pandomq.cluster.limits import PASSED_PART_BYTES_MAX, PASSED_UNDER_WAY_MAX
from pandomq.cluster.passed_requests import (
    BadPassedMessage,
    GiveUp,
    Next,
    PassedAnswer,
    PassedMessage,
    PassedRequest,
    RequestPart,
    decode,
    decode_answer,
    decode_request,
    encode,
    encode_whole,
)

if TYPE_CHECKING:
    from pandomq.node.peers.peer import Peer

OnAnswer = Callable[[PassedAnswer | str], None]
"""Called with the answer, or with the reason why there is none."""
Reply = Callable[[PassedAnswer], None]
OnRequest = Callable[[str, PassedRequest, Reply], None]
"""Called with the broker that passed the request on, the request, and a way to reply."""


class _Transfer:
    """One request and its answer, at either end."""

    __slots__ = ("arrived", "number", "on_answer", "peer", "sent")

    def __init__(self, peer: str, number: int, on_answer: OnAnswer | None = None) -> None:
        self.peer = peer
        self.number = number
        self.on_answer = on_answer
        self.sent = b""
        """The data to send, complete."""
        self.arrived = bytearray()


class PeerRequests:
    def __init__(self, peer_of: Callable[[str], Peer | None], send: Callable[[str, bytes], None]) -> None:
        """`send` gives a message for another broker to the next step."""
        self._peer_of = peer_of
        self._send = send
        self._last_number = 0
        self._asked: dict[int, _Transfer] = {}
        self._served: dict[tuple[str, int], _Transfer] = {}
        self.on_request: OnRequest | None = None

    # Requests of this broker.

    def objection(self, name: str) -> str | None:
        """Why the request cannot be sent to that broker; None if it can."""
        peer = self._peer_of(name)
        if peer is None or not peer.linked or peer.hello is None:
            return "there is no link to it"
        if peer.hello.newest < PASSED_REQUESTS_VERSION:
            return (
                f"its version {peer.hello.version} accepts no requests over links: send the request to its own HTTP API"
            )
        return None

    def ask(self, name: str, request: PassedRequest, on_answer: OnAnswer) -> int:
        """A step of the node has to follow. The number is for `give_up`."""
        self._last_number += 1
        asked = _Transfer(name, self._last_number, on_answer)
        asked.sent = encode_whole(request)
        self._asked[asked.number] = asked
        self._send_part(asked, 0, of_answer=False)
        return asked.number

    def give_up(self, number: int) -> None:
        """The caller does not wait for the answer any more."""
        asked = self._asked.pop(number, None)
        if asked is not None:
            self._say(asked.peer, GiveUp(number, by_asker=True))

    # Messages from other brokers.

    def disconnected(self, name: str) -> None:
        for number in [number for number, asked in self._asked.items() if asked.peer == name]:
            self._end(
                self._asked.pop(number),
                f"the link to {name} was lost; it is not known whether the request was carried out",
            )
        for key in [key for key in self._served if key[0] == name]:
            del self._served[key]

    def close_all(self, reason: str) -> None:
        """This node ends."""
        asked, self._asked = self._asked, {}
        for transfer in asked.values():
            self._end(
                transfer,
                f"this broker restarts its state ({reason}); it is not known whether the request was carried out",
            )
        self._served.clear()

    def received(self, name: str, data: bytes) -> None:
        """Raises BadPassedMessage."""
        message = decode(data)
        match message:
            case RequestPart(of_answer=True):
                self._take_answer(name, message)
            case RequestPart():
                self._take_request(name, message)
            case Next(number, of_answer, offset):
                transfer = self._served.get((name, number)) if of_answer else self._asked.get(number)
                if transfer is not None and transfer.peer == name and offset < len(transfer.sent):
                    self._send_part(transfer, offset, of_answer=of_answer)
            case GiveUp(number, by_asker):
                if by_asker:
                    self._served.pop((name, number), None)
                elif number in self._asked and self._asked[number].peer == name:
                    self._end(self._asked.pop(number), f"{name} rejected the request")
            case None:
                pass

    def _take_answer(self, name: str, part: RequestPart) -> None:
        asked = self._asked.get(part.number)
        if asked is None or asked.peer != name:
            self._say(name, GiveUp(part.number, by_asker=True))
        elif self._is_whole(asked, part):
            del self._asked[part.number]
            try:
                answer = decode_answer(asked.arrived)
            except BadPassedMessage:
                self._end(asked, f"the response of {name} is malformed")
                raise
            assert asked.on_answer is not None
            asked.on_answer(answer)

    def _take_request(self, name: str, part: RequestPart) -> None:
        served = self._served.get((name, part.number))
        if served is None and part.offset == 0 and self._count_of(name) < PASSED_UNDER_WAY_MAX and self.on_request:
            served = self._served[name, part.number] = _Transfer(name, part.number)
        if served is None or served.sent:
            self._say(name, GiveUp(part.number, by_asker=False))
        elif self._is_whole(served, part):
            request, served.arrived = decode_request(served.arrived), bytearray()
            assert self.on_request is not None
            self.on_request(name, request, lambda answer: self._reply(served, answer))

    def _count_of(self, name: str) -> int:
        return sum(key[0] == name for key in self._served)

    def _reply(self, served: _Transfer, answer: PassedAnswer) -> None:
        """A step of the node has to follow."""
        if self._served.get((served.peer, served.number)) is served:
            served.sent = encode_whole(answer)
            self._send_part(served, 0, of_answer=True)

    def _is_whole(self, transfer: _Transfer, part: RequestPart) -> bool:
        """Takes the part, and asks for the next one if there is one. Raises BadPassedMessage."""
        if part.offset != len(transfer.arrived) or not part.octets or part.offset + len(part.octets) > part.size:
            raise BadPassedMessage("a part of a request does not follow the previous one")
        transfer.arrived += part.octets
        if len(transfer.arrived) == part.size:
            return True
        self._say(transfer.peer, Next(part.number, part.of_answer, len(transfer.arrived)))
        return False

    # Sending.

    def _send_part(self, transfer: _Transfer, offset: int, *, of_answer: bool) -> None:
        octets = transfer.sent[offset : offset + PASSED_PART_BYTES_MAX]
        self._say(transfer.peer, RequestPart(transfer.number, of_answer, offset, len(transfer.sent), octets))
        if of_answer and offset + len(octets) == len(transfer.sent):
            self._served.pop((transfer.peer, transfer.number), None)

    def _say(self, name: str, message: PassedMessage) -> None:
        self._send(name, encode(message))

    def _end(self, asked: _Transfer, reason: str) -> None:
        assert asked.on_answer is not None
        asked.on_answer(reason)
