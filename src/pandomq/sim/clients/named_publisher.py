"""Publishes under a producer name, with numbers, and repeats unconfirmed messages under the same numbers (D11).

Each number counts once, on any broker and after any repetition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.methods import BasicAck, ChannelClose, ConfirmSelect, ConfirmSelectOk, Method, QueueDeclareOk
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.publisher import Publishing
from pandomq.sim.ledger import BrokenPromise, SentMessage

if TYPE_CHECKING:
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene


class NamedPublisher(SimulatedClient):
    def __init__(self, scene: Scene, name: str, kind: QueueKind, wanted: int) -> None:
        super().__init__(scene, name)
        self._kind = kind
        self._wanted = wanted
        self._window = self.random.choice((1, 5, 30))
        self._think_ms = self.random.choice((0, 5, 40))
        self._publishing = Publishing(self, producer=name)
        """One for the client's whole life, since numbers continue across connections."""
        self._owed: dict[int, tuple[SentMessage, bytes]] = {}
        """By number: the unconfirmed messages, as sent."""
        self._tags: dict[int, int] = {}
        """The numbers by the delivery tags of this connection."""
        self._tag = 0
        self._begun = False

    @property
    def content(self) -> bool:
        return self._publishing.count >= self._wanted and not self._owed

    def end_wish(self) -> None:
        self._wanted = self._publishing.count + 2
        self._later()

    def opened(self) -> None:
        self._tags.clear()
        self._tag = 0
        self.send(ConfirmSelect())
        self.declare(self._kind)

    def disconnected(self) -> None:
        self._begun = False

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case QueueDeclareOk():
                self._begun = True
                for message, _ in self._owed.values():
                    message.said_again = True
                self._say([octets for _, octets in self._owed.values()], list(self._owed))
                self._later()
            case BasicAck(tag, multiple):
                self._settle(tag, multiple)
                self._later()
            case ConfirmSelectOk():
                pass
            case _:
                raise self.unexpected(method)

    def channel_closed(self, method: ChannelClose) -> None:
        if "a newer connection publishes" not in method.reply_text:
            super().channel_closed(method)
        # A publish of its last connection arrived late, and the broker took it for that of a newer connection.
        self.cut()

    def _say(self, octets: list[bytes], numbers: list[int]) -> None:
        for number in numbers:
            self._tag += 1
            self._tags[self._tag] = number
        if octets:
            self.scene.trace.detail(self.name, f"> says {numbers}")
            self.send_bytes(b"".join(octets))

    def _settle(self, tag: int, multiple: bool) -> None:
        assert self.cable is not None
        tags = [one for one in self._tags if one <= tag] if multiple else [tag]
        for one in tags:
            number = self._tags.pop(one, None)
            if number is None:
                raise BrokenPromise(
                    "confirms", f"{self.name} received a confirm for publish {one}, which was already confirmed"
                )
            message, _ = self._owed.pop(number)
            self.scene.observer.confirmed(message, self.cable)

    def _later(self) -> None:
        self.act_later(self.random.randint(0, self._think_ms), self._publish)

    def _publish(self) -> None:
        if not self._begun:
            return
        room = min(self._window - len(self._owed), self._wanted - self._publishing.count)
        count = min(room, self.random.randint(1, 6))
        numbers = []
        for _ in range(count):
            message, octets = self._publishing.message([self._kind])
            self._owed[message.number] = (message, octets)
            numbers.append(message.number)
        self._say([self._owed[number][1] for number in numbers], numbers)
        if room > count > 0:
            self._later()
