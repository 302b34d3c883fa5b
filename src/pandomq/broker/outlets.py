"""What other brokers of the cluster have here: an outlet each, and the names of their private queues.

A private queue lives on the broker that its connection is to. This broker, the root, knows two things of it. Its name:
the other broker *claims* it by an exclusive declare, which makes a `Stub`, so that nobody else can have it. And what it
is bound to: the other broker binds its `Outlet`, once for all its private queues that are bound alike. Whatever is for
any of them goes into the outlet, once, and from there to the other broker, which knows its own queues.

A trunk, the connection of that broker itself, has at most one outlet in its vhost. A new one takes the place of an old
one that is not known to be dead yet: with its claims, so that they can be repeated.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pandomq import kernel
from pandomq.broker.copies import without_bcc
from pandomq.broker.queue import Queue
from pandomq.errors import ChannelFault, access_refused, connection_forced, precondition_failed
from pandomq.methods import BasicConsume, BasicGet, MethodInput, TxCommit

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client
    from pandomq.broker.policies import Effect
    from pandomq.broker.vhost import Vhost

OUTLET: Final = "x-pandomq-outlet"


class _Elsewhere(Queue):
    __slots__ = ()

    def follow(self, policy: "Effect | None") -> bool:
        """Policies concern the queues behind it, where those are."""
        return False

    def follow_trace(self, trace: kernel.Trace | None) -> None:
        """And so do traces."""


class Outlet(_Elsewhere):
    """Holds what is on its way to another broker."""

    __slots__ = ("origin", "received_count", "silent")

    def __init__(self, vhost: "Vhost", name: str, client: "Client", now_ms: int) -> None:
        super().__init__(vhost, name, arguments={OUTLET: True}, owner=client, user=client.user, now_ms=now_ms)
        assert client.origin is not None
        self.origin = client.origin
        self.received_count = 0
        """How many messages have come out at the other end, as it says."""
        self.silent = False
        """It has not said so for long, and is not waited for until it has caught up."""
        self.kernel.configure(outlet=True)


class Stub(_Elsewhere):
    """Stands for the name of a private queue; it holds nothing, and the default exchange leads to the outlet."""

    __slots__ = ("outlet",)

    def __init__(self, outlet: Outlet, name: str, client: "Client", now_ms: int) -> None:
        super().__init__(outlet.vhost, name, owner=client, user=client.user, now_ms=now_ms)
        self.outlet = outlet


def check_outlet(client: "Client", arguments: Mapping[str, Any], resource: str, *, exclusive: bool) -> None:
    """Raises ChannelFault (406)."""
    if not client.trunk or not exclusive or arguments[OUTLET] is not True:
        raise precondition_failed(f"invalid arg '{OUTLET}' for {resource}: it is for other brokers of the cluster only")


def add_outlet(broker: "Broker", client: "Client", name: str) -> Outlet:
    """Raises ChannelFault (406) if this trunk has one already."""
    vhost = client.vhost
    assert client.origin is not None
    known = vhost.outlets.get(client.origin)
    if known is not None:
        if known.owner is client:
            raise precondition_failed(f"broker '{client.origin}' has an outlet in vhost '{vhost.name}' already")
        assert known.owner is not None
        fault = connection_forced(f"another trunk of broker '{client.origin}' takes the place of this one")
        broker.faults.close_client(known.owner, fault)
        broker.faults.finish()
    outlet = Outlet(vhost, name, client, broker.now_ms)
    vhost.add_queue(outlet)
    vhost.outlets[client.origin] = outlet
    broker.receipts.add(outlet)
    client.add_private_queue(outlet)
    return outlet


def claim(broker: "Broker", client: "Client", name: str, *, address: bool) -> Stub:
    """`address`: of direct reply-to. Raises ChannelFault (406) if there is no outlet."""
    vhost = client.vhost
    assert client.origin is not None
    outlet = vhost.outlets.get(client.origin)
    if outlet is None:
        raise precondition_failed(f"broker '{client.origin}' has no outlet in vhost '{vhost.name}'")
    stub = Stub(outlet, name, client, broker.now_ms)
    if address:
        vhost.add_reply_queue(stub)
    else:
        vhost.add_queue(stub)
    client.add_private_queue(stub)
    return stub


def take_receipts(broker: "Broker", client: "Client", run: kernel.SettleRun) -> None:
    """What a trunk acknowledges is no delivery: its tag is the number of messages that came out of its outlet."""
    outlet = client.vhost.outlets.get(client.origin or "")
    if outlet is not None and outlet.owner is client:
        outlet.received_count = max(outlet.received_count, *(run[position][2] for position in range(len(run))))
        outlet.silent = outlet.silent and outlet.received_count < outlet.kernel.published
        broker.receipts.release()


def publishes(item: object) -> bool:
    """Whether this input of a client may lead messages to outlets, so that those have to be in place."""
    return isinstance(item, kernel.PublishRun) or (isinstance(item, MethodInput) and isinstance(item.method, TxCommit))


def takes(item: object) -> bool:
    """Whether this input of a client takes messages, which another broker's client may have acked at the last root."""
    return isinstance(item, MethodInput) and isinstance(item.method, BasicConsume | BasicGet)


def refuse_binding(queue: Queue) -> None:
    """Raises ChannelFault (403) for a queue that is bound on its own broker."""
    if isinstance(queue, Stub):
        raise _not_here(queue)


def _not_here(stub: Stub) -> ChannelFault:
    return access_refused(f"{stub.resource} is on broker '{stub.outlet.origin}', and is bound there")


def versions_of(
    message: kernel.Message, queues: "Sequence[kernel.Queue]"
) -> "list[tuple[kernel.Message, Sequence[kernel.Queue]]]":
    """The message as each of these queues is to have it: consumers never see BCC, but other brokers route by it."""
    shown = without_bcc(message) if message.special & kernel.SPECIAL_COPIES else message
    if shown is message:
        return [(message, queues)]
    here, outlets = apart(queues)
    return [(shown, here), (message, outlets)] if here and outlets else [(message if outlets else shown, queues)]


def apart(queues: "Sequence[kernel.Queue]") -> "tuple[list[kernel.Queue], list[kernel.Queue]]":
    """Those that are no outlets, and those that are."""
    here = [queue for queue in queues if not isinstance(queue.owner, Outlet)]
    return here, [queue for queue in queues if isinstance(queue.owner, Outlet)]
