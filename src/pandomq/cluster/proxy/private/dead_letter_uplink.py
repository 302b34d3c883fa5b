"""Dead letters of private queues on their way to the root, numbered and kept until the root has confirmed them.

The front has already routed these messages to private queues; the root routes them to shared queues and to other
brokers. If the root does not confirm them for long, the front drops new ones: like private queues, they are in the
memory of one broker only.
"""

from typing import TYPE_CHECKING, Any

from pandomq import kernel
from pandomq.broker.exchanges.message_headers import MessageHeaders
from pandomq.broker.queues.queue import Queue
from pandomq.cluster.proxy.front_channel import PRODUCER_BITS, ignore_reply
from pandomq.cluster.proxy.limits import LETTERS_BYTES_MAX
from pandomq.limits import FRAME_BYTES_MIN
from pandomq.methods import ChannelOpen, ConfirmSelect
from pandomq.properties import read_headers

if TYPE_CHECKING:
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.lane import Question, TunnelLane
    from pandomq.cluster.proxy.tunnel import Tunnel
    from pandomq.errors import ChannelFault


def goes_round(vhost: "Vhost", letter: kernel.Message) -> bool:
    """The letter was in all the shared queues that it would go to before, and no client has rejected it since (see
    `deaths`)."""
    passed: set[object] = set()
    deaths: Any = read_headers(letter.header).get("x-death") or ()
    for death in deaths:
        if death.get("reason") == "rejected":
            break
        passed.add(death.get("queue"))
    exchange = vhost.router.exchanges.get(letter.exchange)
    if len(passed) < 2 or exchange is None:
        # The letter's own queue is a private one.
        return False
    queues = vhost.router.destinations(exchange, (letter.routing_key,), MessageHeaders(letter))
    shared = [queue.name for queue in queues if isinstance(queue, Queue) and queue.owner is None]
    return bool(shared) and passed.issuperset(shared)


class DeadLetterUplink:
    """The owner of a session that no client reads: the confirms end here."""

    __slots__ = ("_channel", "_front", "_number", "_producer", "_session", "_tunnel", "dropped_count")

    def __init__(self, front: "Front", number: int) -> None:
        self._front = front
        self._number = number
        self._tunnel: Tunnel | None = None
        self._session = kernel.Session(front.engine, self, kernel.Routes(1), FRAME_BYTES_MIN, LETTERS_BYTES_MAX)
        self.dropped_count = 0
        self._begin()

    def _begin(self) -> None:
        self._producer = 0
        self._channel = kernel.Channel(self._session, self._number, self)
        self._channel.mode = kernel.CONFIRM

    def send(self, letter: kernel.Message) -> None:
        if self._channel.kept_bytes > LETTERS_BYTES_MAX:
            self.dropped_count += 1
            return
        if self._tunnel is not None and self._session.uplink is None:
            self._open(self._tunnel)
        self._front.engine.forward(self._channel, letter, 0)

    def attach(self, tunnel: "Tunnel") -> None:
        self._tunnel = tunnel
        if self._channel.kept_count:
            self._open(tunnel)
            self._channel.resend()

    def _open(self, tunnel: "Tunnel") -> None:
        if not self._producer:
            self._producer = self._front.random.getrandbits(PRODUCER_BITS) | 1
        lane = tunnel.lane(self._number, self)
        numbers = f"{self._channel.first_kept - 1}:{self._channel.published_count}"
        lane.ask(ChannelOpen(f"{self._producer}:{numbers}"), ignore_reply)
        lane.tell(ConfirmSelect(no_wait=True))
        self._session.uplink = tunnel.session

    def detach(self) -> None:
        self._tunnel = self._session.uplink = None

    def take_confirms(self, run: kernel.SettleRun) -> None:
        self._front.engine.relay_confirms(self._session, run)
        self._session.take()

    def closed_above(self, lane: "TunnelLane", fault: "ChannelFault", unanswered: "list[Question]") -> None:
        """An exchange was deleted after the dead letter was sent. The other dead letters under way are lost with the
        channel."""
        self.dropped_count += self._channel.kept_count
        self._session.uplink = None
        self._channel.close(self._front.now_ms)
        self._begin()

    def cancelled_above(self, tag: str) -> None:
        """Never called: nothing is consumed here."""

    def proven_above(self, number: int) -> None:
        """Never called: nothing is settled here."""
