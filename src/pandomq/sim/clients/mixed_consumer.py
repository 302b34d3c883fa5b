"""Receives messages of two queues on one channel, by consuming and by basic.get. It settles them late, out of order,
one by one or all up to one of them, with a consumer that is cancelled and registered again in between.

Its channel has confirms, which prove acks, or transactions, whose commits prove them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicQosOk,
    ChannelClose,
    ConfirmSelect,
    ConfirmSelectOk,
    Method,
    QueueDeclareOk,
    TxCommit,
    TxCommitOk,
    TxRollback,
    TxRollbackOk,
    TxSelect,
    TxSelectOk,
)
from pandomq.properties import PERSISTENT, Properties, encode_header
from pandomq.sim.clients.client import CHANNEL, FRAME_MAX, SimulatedClient
from pandomq.sim.ledger import Place
from pandomq.sim.queues import PROOF, QueueKind
from pandomq.wire.codec import encode_content

if TYPE_CHECKING:
    from pandomq.sim.checkers.holders import OneHolder
    from pandomq.sim.scene import Scene

HELD_MAX: Final = 12
"""The number of messages that it holds before it certainly settles one."""
REST_MS_MAX: Final = 256
"""While it finds its queues empty, its pauses become longer, by at most this value."""
RETURN_CHANCE: Final = 0.25
RETURNS_MOST_CHANCE: Final = 0.75
ROLLBACK_CHANCE: Final = 0.2
PROOF_BODY: Final = b"proof|"
ROOT_CHANGED: Final = ("the root changed", "rolled back")
"""Reply texts with which a front closes a channel whose acks cannot be proven, or whose transaction settles deliveries
of an earlier root."""


class MixedConsumer(SimulatedClient):
    def __init__(self, scene: Scene, name: str, consumed: QueueKind, taken: QueueKind, checker: OneHolder) -> None:
        """Messages of `consumed` arrive in both ways, messages of `taken` by basic.get alone."""
        super().__init__(scene, name)
        self._consumed = consumed
        self._queues = (consumed, taken)
        self._checker = checker
        self._transacts = self.random.random() < 0.5
        self._prefetch = self.random.choice((1, 3, 8))
        self._think_ms = self.random.choice((5, 20, 50))
        self._rest_ms = 0
        """The longest extension of its pauses while its queues are empty."""
        self._holds_ms = 0
        """The client settles no message that it has held for a shorter time."""
        self._return_chance = RETURN_CHANCE
        self._turn = 0
        """The number of the connection to which its timer belongs."""
        self._begin()

    def settle_late(self, holds_ms: int) -> None:
        """Must be called before it connects. Its confirms prove acks of deliveries of an earlier root."""
        self._holds_ms = holds_ms
        self._transacts = False

    def return_most(self) -> None:
        """Must be called before it connects. It returns most of its messages, and the broker delivers them to other
        consumers."""
        self._return_chance = RETURNS_MOST_CHANCE

    def _begin(self) -> None:
        self._turn += 1
        self._held: dict[int, Place] = {}
        """The messages that it may settle, by tag."""
        self._since_ms: dict[int, int] = {}
        """The times at which they arrived, by tag."""
        self._settled: dict[int, tuple[Place, bool]] = {}
        """The messages settled in the open transaction, by tag, each with whether it was acked."""
        self._unproven: list[Place] = []
        """The messages that were acked, and for which no proof was requested."""
        self._proofs: dict[int, list[Place]] = {}
        """By the number of the publish or commit that proves them."""
        self._proof_count = 0
        self._getting = ""
        """The queue whose answer to basic.get it waits for."""
        self._is_consuming = False
        self._is_busy = False
        """Whether it waits for cancel-ok, commit-ok or rollback-ok."""

    def opened(self) -> None:
        self._begin()
        self.send(TxSelect() if self._transacts else ConfirmSelect())
        self.declare(PROOF)
        for kind in self._queues:
            self.declare(kind)
        self.send(BasicQos(prefetch_count=self._prefetch))
        self._consume()
        self._later()

    def disconnected(self) -> None:
        self._turn += 1

    def get_queue(self) -> str:
        return self._getting

    def channel_closed(self, method: ChannelClose) -> None:
        told = self.scene.proxied and any(text in method.reply_text for text in ROOT_CHANGED)
        if not told:
            super().channel_closed(method)
        if self._transacts:
            # No part of the transaction was applied.
            for place in self._proofs.pop(self._proof_count, []):
                self.scene.ledger.unsettle(place)
        self.cut()

    def _consume(self) -> None:
        self._is_consuming = True
        self.send(BasicConsume(self._consumed.name, self._consumed.name))

    # Answers and deliveries.

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case BasicDeliver(queue, tag):
                self._rest_ms = 0
                self._take(tag, (queue, self.scene.ledger.message_of(body)))
            case BasicGetOk(tag):
                self._rest_ms = 0
                self._take(tag, (self._getting, self.scene.ledger.message_of(body)))
                self._getting = ""
            case BasicGetEmpty():
                self._rest_ms = min(2 * self._rest_ms or 1, REST_MS_MAX)
                self._getting = ""
            case BasicAck(tag, multiple):
                self._prove(tag, multiple)
            case BasicCancelOk():
                self._is_busy = self._is_consuming = False
            case TxCommitOk():
                self._is_busy = False
                self._prove(self._proof_count, False)
            case TxRollbackOk():
                # It holds them as before.
                self._is_busy = False
                self._held |= {tag: place for tag, (place, _) in self._settled.items()}
                self._held = dict(sorted(self._held.items()))
                self._settled = {}
            case QueueDeclareOk() | BasicQosOk() | BasicConsumeOk() | ConfirmSelectOk() | TxSelectOk():
                pass
            case _:
                raise self.unexpected(method)

    def _take(self, tag: int, place: Place) -> None:
        self._held[tag] = place
        self._since_ms[tag] = self.scene.agenda.now_ms

    def _prove(self, tag: int, multiple: bool) -> None:
        numbers = [number for number in self._proofs if number <= tag] if multiple else [tag]
        for number in numbers:
            self.scene.ledger.proven.update(self._proofs.pop(number))

    # Actions.

    def _later(self) -> None:
        turn = self._turn

        def act() -> None:
            if self._turn == turn and self.ready and not self.scene.ending:
                if not self._is_busy:
                    self._act(self.random.random())
                self._later()

        self.scene.agenda.after(self.random.randint(1, self._think_ms + (0 if self._held else self._rest_ms)), act)

    def _act(self, chance: float) -> None:
        if len(self._held) >= HELD_MAX:
            chance = 0.9
        if chance < 0.45 and not self._getting:
            self._getting = self.random.choice(self._queues).name
            self.send(BasicGet(self._getting))
        elif 0.45 <= chance < 0.5:
            self._toggle()
        elif chance >= 0.5 and self._held and not (self._settled and chance < 0.6):
            self._settle(chance)
        elif self._settled:
            self._end_transaction()

    def _toggle(self) -> None:
        """Cancels the consumer, or begins one. Deliveries of a cancelled consumer can still be settled."""
        if self._is_consuming:
            self._is_busy = True
            self.send(BasicCancel(self._consumed.name))
        else:
            self._consume()

    def _settle(self, chance: float) -> None:
        latest_ms = self.scene.agenda.now_ms - self._holds_ms
        ripe = [tag for tag in self._held if self._since_ms[tag] <= latest_ms]
        if not ripe:
            return
        tag = self.random.choice(ripe)
        multiple = chance >= 0.75
        tags = [one for one in self._held if one == tag or (multiple and one < tag)]
        places = {one: self._held.pop(one) for one in tags}
        acks = self.random.random() >= self._return_chance
        self.send(BasicAck(tag, multiple) if acks else BasicNack(tag, multiple, requeue=True))
        if self._transacts:
            self._settled |= {one: (place, acks) for one, place in places.items()}
        elif acks:
            self._ack(list(places.values()))
            if self.random.random() < 0.5:
                self._ask_proof()
        else:
            self._checker.gave_back(places.values())

    def _ack(self, places: list[Place]) -> None:
        self._unproven += places
        for place in places:
            self.scene.ledger.settle(place)

    def _ask_proof(self) -> None:
        self._proof_count += 1
        self._proofs[self._proof_count], self._unproven = self._unproven, []
        if not self._transacts:
            header = encode_header(len(PROOF_BODY), Properties(delivery_mode=PERSISTENT))
            self.send_bytes(encode_content(CHANNEL, BasicPublish("", PROOF.name), header, PROOF_BODY, FRAME_MAX))

    def _end_transaction(self) -> None:
        self._is_busy = True
        if self.random.random() < ROLLBACK_CHANCE:
            self.send(TxRollback())
            return
        settled, self._settled = self._settled, {}
        self._ack([place for place, acks in settled.values() if acks])
        self._checker.gave_back([place for place, acks in settled.values() if not acks])
        self._ask_proof()
        self.send(TxCommit())
