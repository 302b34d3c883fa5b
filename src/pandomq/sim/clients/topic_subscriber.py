"""Subscribers of a topic exchange, which bind and unbind keys of their private queues while they consume, and the
publishers of the messages.

A subscriber requests one change at a time and waits for its answer. The messages that it may or must receive follow
from the checker's record of its bindings (`sim.cluster.checkers.topics`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicPublish,
    ConfirmSelect,
    ExchangeDeclare,
    ExchangeDeclareOk,
    Method,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueUnbind,
    QueueUnbindOk,
)
from pandomq.properties import PERSISTENT, Properties, encode_header
from pandomq.sim.clients.client import CHANNEL, FRAME_MAX, SimulatedClient
from pandomq.sim.clients.publisher import MessageOptions, Publishing
from pandomq.sim.clients.subscriber import Announcer, Subscriber
from pandomq.sim.ledger import SentMessage
from pandomq.wire.codec import encode_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.sim.cluster.checkers.topics import TopicsKept, TopicSubscription
    from pandomq.sim.ledger import ClientTransaction
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

TOPICS: Final = ExchangeDeclare("topics", "topic", durable=True)
PATTERNS: Final = ("#", "*", "a", "a.#", "a.*", "*.b", "#.b", "a.b", "#.b.#", "a.*.c", "a.#.c", "b.#", "#.#")
KEYS: Final = ("", "a", "b", "a.b", "b.a", "a.c", "b.b", "a.b.c", "a.a.a", "c.b.a", "c")
BINDINGS_MIN: Final = 1
"""A subscriber that has fewer binds another key."""
BINDINGS_MAX: Final = 4
AGAIN_CHANCE: Final = 0.3
"""The chance that an unbound key is bound again at once."""
LAST_CHANGES: Final = 6
LAST_MESSAGES: Final = 8
"""The number of messages that are published after the faults have ended."""
BODY_SIZES: Final = (0, 0, 10, 200)


class TopicSubscriber(Subscriber):
    def __init__(
        self,
        scene: Scene,
        name: str,
        checker: TopicsKept,
        on_asked: Callable[[TopicSubscriber], None],
        on_bound: Callable[[TopicSubscriber, str], None],
    ) -> None:
        """`on_asked` is called for each change that the subscriber requests, `on_bound` for the answer to each bind."""
        SimulatedClient.__init__(self, scene, name)
        self.subscribes = True
        self._checker: TopicsKept = checker  # type: ignore[assignment]  # the other subscribers have another checker
        self._subscription: TopicSubscription | None = None
        self._on_asked, self._on_bound = on_asked, on_bound
        self._queue = ""
        self._think_ms = self.random.choice((2, 15, 60))
        self._asked: str | None = None
        """The pattern whose bind or unbind waits for its answer."""
        self.changes = 0
        """The number of changes that it has requested."""
        self._last_unbound: str | None = None
        self._changes_left: int | None = None
        """The remaining number of changes after the faults have ended; None before that."""

    @property
    def waits(self) -> bool:
        """Whether it waits for the answer to a bind or an unbind."""
        return self._asked is not None

    @property
    def _is_bound(self) -> bool:
        if self._subscription is None or self.waits or self._changes_left:
            return False
        return len(self._subscription.bound) >= BINDINGS_MIN

    @property
    def content(self) -> bool:
        return self._is_bound and super().content

    @property
    def listens(self) -> bool:
        return self._is_bound and super().listens

    @property
    def keys_by_front(self) -> dict[str, tuple[str, ...]] | None:
        """Returns the bound keys, by the broker whose front has to report them to the root; empty if the subscriber is
        a client of the root itself. None while the bindings are about to change."""
        if self._subscription is None or not self._is_bound:
            return None
        bound = tuple(self._subscription.bound)
        return {self._subscription.broker: bound} if self._subscription.is_behind_front else {}

    def end_wish(self) -> None:
        # A broker that is neither a member nor a secondary serves no client, and may stay so.
        self.place = None
        self._changes_left = LAST_CHANGES
        self._later()

    def begin_anew(self) -> None:
        assert self._subscription is not None
        self._checker.begin_anew(self._subscription)

    def opened(self) -> None:
        self._asked = self._last_unbound = None
        self.send(TOPICS, QueueDeclare("", exclusive=True))

    def disconnected(self) -> None:
        if self._subscription is not None:
            self._checker.end(self._subscription)
        self._subscription = None
        self._asked = None

    def method(self, method: Method, body: bytes) -> None:
        subscription = self._subscription
        match method:
            case QueueDeclareOk(queue):
                self._queue = queue
                self.send(BasicConsume(queue, self.name, no_ack=True))
            case BasicConsumeOk():
                assert self.cable is not None
                self._subscription = self._checker.begin(self.name, self.cable)
                self._change()
            case BasicDeliver(routing_key=key) if subscription is not None:
                self._checker.received(subscription, self.scene.ledger.message_of(body), key)
            case QueueBindOk() | QueueUnbindOk() if subscription is not None and self._asked is not None:
                if isinstance(method, QueueBindOk):
                    self._checker.bind_answered(subscription, self._asked)
                    self._on_bound(self, self._asked)
                else:
                    self._checker.unbind_answered(subscription, self._asked)
                    self._last_unbound = self._asked
                self._asked = None
                self._later()
            case ExchangeDeclareOk():
                pass
            case _:
                raise self.unexpected(method)

    def _later(self) -> None:
        subscription = self._subscription

        def again() -> None:
            if self._subscription is subscription:
                self._change()

        self.scene.agenda.after(self.random.randint(0, self._think_ms), again)

    def _change(self) -> None:
        subscription = self._subscription
        if subscription is None or not self.ready or self.waits:
            return
        bound, random = subscription.bound, self.random
        if len(bound) >= BINDINGS_MIN and self._changes_left == 0:
            return
        binds = len(bound) < BINDINGS_MIN or (len(bound) < BINDINGS_MAX and random.random() < 0.55)
        if self._last_unbound is not None and random.random() < AGAIN_CHANCE:
            self._asked, binds = self._last_unbound, True
        elif binds:
            self._asked = random.choice([pattern for pattern in PATTERNS if pattern not in bound])
        else:
            self._asked = random.choice(list(bound))
        self._last_unbound = None
        self.changes += 1
        if self._changes_left:
            self._changes_left -= 1
        if binds:
            self._checker.bind_asked(subscription, self._asked)
            self.send(QueueBind(self._queue, TOPICS.exchange, self._asked))
        else:
            self._checker.unbind_asked(subscription, self._asked)
            self.send(QueueUnbind(self._queue, TOPICS.exchange, self._asked))
        self._on_asked(self)


class TopicPublishing(Publishing):
    """The messages of one channel, each with a topic key."""

    def __init__(self, client: TopicAnnouncer, checker: TopicsKept) -> None:
        super().__init__(client)
        self._checker = checker
        self.wanted_keys: list[str] = []
        """The keys of the next messages; later messages have any key."""

    def message(
        self,
        queues: Sequence[QueueKind],
        exchange: str = "",
        transaction: ClientTransaction | None = None,
        form: MessageOptions | None = None,
        label: tuple[str, int] | None = None,
    ) -> tuple[SentMessage, bytes]:
        random, ledger = self._client.random, self._client.scene.ledger
        self.count += 1
        persistent = random.random() < 0.5
        message = SentMessage(self.channel, self.count, (), persistent, 0, None, 0, 0)
        name = b"%d:%d" % (self.channel, self.count)
        body = name + b"|" + bytes(random.choice(BODY_SIZES))
        key = self.wanted_keys.pop() if self.wanted_keys else random.choice(KEYS)
        ledger.messages[name] = message
        self._checker.announced(message, key)
        header = encode_header(len(body), Properties(delivery_mode=PERSISTENT if persistent else None))
        return message, encode_content(CHANNEL, BasicPublish(exchange, key), header, body, FRAME_MAX)


class TopicAnnouncer(Announcer):
    """Publishes with topic keys, a few messages at a time, so that bindings change between them."""

    def __init__(self, scene: Scene, name: str, wanted: int, checker: TopicsKept) -> None:
        super().__init__(scene, name, wanted)
        self._checker = checker
        self._exchange = TOPICS.exchange
        self._window = self.random.choice((1, 3, 8))
        self._burst_max = self.random.choice((1, 2, 4))
        self._think_ms = self.random.choice((10, 40, 80))

    def opened(self) -> None:
        self._publishing = TopicPublishing(self, self._checker)
        self._unconfirmed.clear()
        self.send(ConfirmSelect(), TOPICS)

    def end_wish(self) -> None:
        self._wanted = self.confirmed + len(self._unconfirmed) + LAST_MESSAGES
        self._later()

    def publish_now(self, key: str) -> None:
        """Publishes the next message with this key, unless the publisher has published all its messages."""
        if isinstance(self._publishing, TopicPublishing):
            self._publishing.wanted_keys = [key]
            self._publish()
