"""The objects of other brokers at the root: an outlet for each, and the names of their private queues.

A private queue lives on the broker of its connection. This broker, the root, knows two things of it. Its name: the
other broker *claims* it by an exclusive declare, which makes a `Stub`, so that no other broker can have it. And its
bindings: the other broker binds its `Outlet`, once for all its private queues with the same binding. Messages for any
of them go into the outlet, once, and from there to the other broker, which knows its own queues.

A trunk, the connection of that broker itself, has at most one outlet in its vhost. A new one replaces an old one that
is not known to be dead yet: with its claims, so that they can be repeated.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pandomq import kernel
from pandomq.broker.publishing.copies import without_bcc
from pandomq.broker.publishing.producer_marks import marked
from pandomq.broker.queues.queue import Queue
from pandomq.errors import ChannelFault, access_refused, connection_forced, precondition_failed
from pandomq.methods import BasicConsume, BasicGet, MethodInput, TxCommit

if TYPE_CHECKING:
    from pandomq.broker.administration.policies import Effect
    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client
    from pandomq.broker.vhost import Vhost

OUTLET: Final = "x-pandomq-outlet"


class _Elsewhere(Queue):
    __slots__ = ()

    def follow(self, policy: "Effect | None") -> bool:
        """Policies apply to the queues behind it, on their broker."""
        return False

    def follow_trace(self, trace: kernel.Trace | None) -> None:
        """Traces apply to the queues behind the outlet, like policies."""


class Outlet(_Elsewhere):
    """Holds messages on their way to another broker."""

    __slots__ = ("origin", "received_count", "silent")

    def __init__(self, vhost: "Vhost", name: str, client: "Client", now_ms: int) -> None:
        super().__init__(vhost, name, arguments={OUTLET: True}, owner=client, user=client.user, now_ms=now_ms)
        assert client.origin is not None
        self.origin = client.origin
        self.received_count = 0
        """How many messages have come out at the other end, as that broker reports."""
        self.silent = False
        """The broker has not reported for long, and is not waited for until it has caught up."""
        self.kernel.configure(outlet=True)


class Stub(_Elsewhere):
    """Reserves the name of a private queue; it holds nothing, and the default exchange routes to the outlet."""

    __slots__ = ("outlet",)

    def __init__(self, outlet: Outlet, name: str, client: "Client", now_ms: int) -> None:
        super().__init__(outlet.vhost, name, owner=client, user=client.user, now_ms=now_ms)
        self.outlet = outlet


def check_outlet(client: "Client", arguments: Mapping[str, Any], resource: str, *, exclusive: bool) -> None:
    """Raises ChannelFault (406)."""
    if not client.trunk or not exclusive or arguments[OUTLET] is not True:
        raise precondition_failed(
            f"invalid arg '{OUTLET}' for {resource}: it is reserved for other brokers of the cluster"
        )


def add_outlet(broker: "Broker", client: "Client", name: str) -> Outlet:
    """Raises ChannelFault (406) if this trunk has one already."""
    vhost = client.vhost
    assert client.origin is not None
    known = vhost.outlets.get(client.origin)
    if known is not None:
        if known.owner is client:
            raise precondition_failed(f"broker '{client.origin}' already has an outlet in vhost '{vhost.name}'")
        assert known.owner is not None
        fault = connection_forced(f"this trunk is replaced by a newer one of broker '{client.origin}'")
        broker.faults.close_client(known.owner, fault)
        broker.faults.finish()
    outlet = Outlet(vhost, name, client, broker.now_ms)
    broker.commands_changed += 1
    vhost.add_queue(outlet)
    vhost.outlets[client.origin] = outlet
    broker.receipts.add(outlet)
    client.add_private_queue(outlet)
    return outlet


def claim(broker: "Broker", client: "Client", name: str, *, address: bool) -> Stub:
    """`address`: for direct reply-to. Raises ChannelFault (406) if there is no outlet."""
    vhost = client.vhost
    assert client.origin is not None
    outlet = vhost.outlets.get(client.origin)
    if outlet is None:
        raise precondition_failed(f"broker '{client.origin}' has no outlet in vhost '{vhost.name}'")
    stub = Stub(outlet, name, client, broker.now_ms)
    broker.commands_changed += 1
    if address:
        vhost.add_reply_queue(stub)
    else:
        vhost.add_queue(stub)
    client.add_private_queue(stub)
    return stub


def take_receipts(broker: "Broker", client: "Client", run: kernel.SettleRun) -> None:
    """Acks of a trunk are no settlements: the tag is the number of messages that came out of its outlet."""
    outlet = client.vhost.outlets.get(client.origin or "")
    if outlet is not None and outlet.owner is client:
        broker.commands_changed += 1
        outlet.received_count = max(outlet.received_count, *(run[position][2] for position in range(len(run))))
        outlet.silent = outlet.silent and outlet.received_count < outlet.kernel.published
        broker.receipts.release()


def publishes(item: object) -> bool:
    """Whether this input of a client may route messages to outlets, so that those have to be ready."""
    return isinstance(item, kernel.PublishRun) or (isinstance(item, MethodInput) and isinstance(item.method, TxCommit))


def takes(item: object) -> bool:
    """Whether this input of a client takes messages, which another broker's client may have acked at the last root."""
    return isinstance(item, MethodInput) and isinstance(item.method, BasicConsume | BasicGet)


def refuse_binding(queue: Queue) -> None:
    """Raises ChannelFault (403) for a queue that is bound on its own broker."""
    if isinstance(queue, Stub):
        raise _not_here(queue)


def _not_here(stub: Stub) -> ChannelFault:
    return access_refused(f"{stub.resource} is on broker '{stub.outlet.origin}', and must be bound there")


def versions_of(
    message: kernel.Message, queues: "Sequence[kernel.Queue]", user: str
) -> "list[tuple[kernel.Message, Sequence[kernel.Queue]]]":
    """The message as each of these queues is to have it: consumers never see BCC, but other brokers route by it. They
    also need the user of a numbered publish."""
    shown = without_bcc(message) if message.special & kernel.SPECIAL_COPIES else message
    numbered = message.special & kernel.SPECIAL_PRODUCER
    if shown is message and not numbered:
        return [(message, queues)]
    here, outlets = apart(queues)
    if not outlets:
        return [(shown, queues)]
    sent = marked(message, user) if numbered else message
    return [(shown, here), (sent, outlets)] if here else [(sent, queues)]


def apart(queues: "Sequence[kernel.Queue]") -> "tuple[list[kernel.Queue], list[kernel.Queue]]":
    """The queues that are no outlets, and the outlets."""
    here = [queue for queue in queues if not isinstance(queue.owner, Outlet)]
    return here, [queue for queue in queues if isinstance(queue.owner, Outlet)]
