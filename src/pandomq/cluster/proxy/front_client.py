"""A client of a front, and the tunnel that represents it at the root, once the client needs one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pandomq import kernel
from pandomq.broker.client import Client
from pandomq.cluster.limits import VOUCHED_PROPERTIES_BYTES_MAX
from pandomq.cluster.proxy.call import Call
from pandomq.cluster.proxy.closing_client import ClosingClient, ClosingStage
from pandomq.cluster.proxy.limits import ASKED_MAX, KEPT_BYTES_MAX, SETTLED_KEPT_MAX, UPLINK_BYTES_MAX
from pandomq.cluster.proxy.mailbox import note_offsets
from pandomq.cluster.proxy.private.refusals import with_refusals
from pandomq.cluster.proxy.tunnel import TUNNEL, Tunnel
from pandomq.fieldtable import encode_table
from pandomq.methods import ChannelCloseOk

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.lane import Then
    from pandomq.cluster.proxy.private.trunk import Trunk
    from pandomq.errors import ConnectionFault
    from pandomq.methods import Method

_CAPABILITIES: Final = {"consumer_cancel_notify": True}
"""Notifications that the front itself needs, whether the client wants them or not."""


class FrontClient(Client):
    __slots__ = (
        "_ages",
        "_crowded",
        "attached",
        "attempt_count",
        "call",
        "closing_client",
        "closing_count",
        "has_refusals",
        "reads_streams",
        "tunnel",
        "wants_root",
    )

    proxied = True
    broker: "Front"

    def __init__(self, broker: "Front", number: int, **facts: Any) -> None:
        super().__init__(broker, number, **facts)
        self.tunnel: Tunnel | None = None
        self.attached = False
        """The tunnel is open, and the root has everything that it needs to know of the client."""
        self.wants_root = False
        """The client's next request needs the root."""
        self.attempt_count = 0
        """Attempts to get a tunnel since the last one was open."""
        self.call: Call | None = None
        self.closing_count = 0
        """Channels that the front has closed for a fault, and the root has not closed yet."""
        self.closing_client: ClosingClient | None = None
        self.has_refusals = False
        """A private queue has refused a publish whose confirm has not come yet."""
        self.reads_streams = False
        """One of its consumers reads a stream, or did."""
        self._ages = 0
        self._crowded = False

    @property
    def front_channels(self) -> "Iterator[FrontChannel]":
        channels: Any = self.channels.values()
        return iter(list(channels))

    def next_age(self) -> int:
        self._ages += 1
        return self._ages

    # Waiting.

    @property
    def asks_again(self) -> bool:
        return self.wants_root or super().asks_again

    @property
    def waits(self) -> bool:
        return (
            self.call is not None
            or self.wants_root
            # The next root gets again what was published before a waiting answer, and nothing published after it.
            or self.held_bytes > 0
            or self.closing_count > 0
            or (self._crowded and self.is_crowded())
            or super().waits
        )

    @property
    def lacks_root(self) -> bool:
        """The client waits for nothing but a root."""
        call = self.call
        if call is not None and call.trunk is not None:
            return not call.trunk.attached
        return self.wants_root or (call is not None and call.method is not None and not self.attached)

    def may_publish(self) -> bool:
        """False: there is no connection to the root now, and the client waits."""
        if not self.reach():
            return False
        for channel in self.front_channels:
            if channel.lane is None and not channel.closing:
                channel.reach()
            if channel.lane is not None:
                # Only the kernel knows which channels the publishes belong to: each channel has to ask the root once
                # more.
                channel.lane.has_published = True
        return True

    def is_crowded(self) -> bool:
        """Too much is under way to the root, or waits for its answer. Then the client waits, too."""
        tunnel = self.tunnel
        self._crowded = tunnel is not None and (
            tunnel.session.pending_bytes > UPLINK_BYTES_MAX
            or tunnel.asked_count > ASKED_MAX
            or sum(channel.kernel.kept_bytes for channel in self.channels.values()) > KEPT_BYTES_MAX
            or sum(channel.kernel.unproven_count for channel in self.channels.values()) > SETTLED_KEPT_MAX
        )
        return self._crowded

    # Calls.

    def call_root(self, channel: "FrontChannel", method: "Method", then: "Then") -> None:
        assert self.call is None and channel.lane is not None
        self.call = Call(channel, method=method, then=then)
        channel.lane.ask(method, self.call.answer)

    def call_trunk(self, channel: "FrontChannel", trunk: "Trunk", then: "Callable[[], None]") -> Call:
        """The caller sends the request to the trunk; the answering code calls `answered`."""
        assert self.call is None
        self.call = Call(channel, then=lambda _method, _message: then(), trunk=trunk)
        self.broker.awaiting.kept_waiting(self)
        return self.call

    def drop_call(self, channel: "FrontChannel") -> None:
        """The channel is closed, which answers its request."""
        if self.call is not None and self.call.channel is channel:
            self.call.abandon()

    def abandon_call(self) -> None:
        if self.call is not None:
            self.call.abandon()

    # The tunnel.

    def reach(self) -> bool:
        """False: there is no connection to the root now. The front looks for one, and the client waits."""
        if self.attached:
            return True
        self.wants_root = True
        if self.tunnel is None and not self.broker.awaiting.is_due_to_dial(self):
            self.dial()
        return False

    def dial(self) -> None:
        if self.gone or self.failed or self.tunnel is not None:
            return
        trunk = self.broker.trunks.get(self.vhost)
        if trunk is not None and trunk.follow(self):
            return
        self.attempt_count += 1
        self.tunnel = Tunnel(
            self.broker,
            self,
            purpose=TUNNEL,
            user=self.user,
            vhost=self.vhost.name,
            peer=self.peer,
            properties=self._vouched_properties(),
            number=self.number,
        )
        self.broker.wanted.append(self.tunnel)

    def _vouched_properties(self) -> bytes:
        properties = self.properties
        named = properties.get("capabilities")
        capabilities = {**named, **_CAPABILITIES} if isinstance(named, dict) else dict(_CAPABILITIES)
        encoded = encode_table({**properties, "capabilities": capabilities})
        if len(encoded) > VOUCHED_PROPERTIES_BYTES_MAX:
            encoded = encode_table({"capabilities": dict(_CAPABILITIES)})
        return encoded

    def tunnel_opened(self) -> None:
        assert self.tunnel is not None
        self.attempt_count = 0
        self.session.uplink = self.tunnel.session
        self.attached = True
        self.wants_root = False
        self.broker.awaiting.has_root(self)
        self._resume()

    def _resume(self) -> None:
        channels = [channel for channel in self.front_channels if channel.reached and not channel.closing]
        for channel in channels:
            channel.open_lane()
        boxes = sorted(
            ((box, channel) for channel in channels for box in channel.consuming()), key=lambda pair: pair[0].age
        )
        for box, channel in boxes:
            channel.resume(box)
        for channel in channels:
            channel.resume_all_else()
        call = self.call
        if call is not None and call.method is not None and not call.is_commit:
            lane = call.channel.lane
            assert lane is not None
            lane.ask(call.method, call.answer)

    def tunnel_lost(self, reason: str) -> None:
        self._detach()
        needed = self.wants_root or any(channel.reached for channel in self.front_channels)
        if needed and not self.gone and not self.failed:
            # The client's next request belongs after publishes that the root has not received, or has forgotten.
            self.wants_root = True
            self.broker.awaiting.dial_later(self, self.attempt_count)
            if self.call is not None or self.held_bytes:
                self.broker.awaiting.kept_waiting(self)
            if any(channel.kernel.kept_count for channel in self.front_channels):
                self.broker.awaiting.keeps_publishes(self)

    def tunnel_refused(self, fault: "ConnectionFault") -> None:
        self._detach()
        self.broker.faults.close_client(self, fault)

    def _detach(self) -> None:
        self.tunnel = None
        self.attached = False
        self.session.uplink = None
        self.closing_count = 0
        for channel in self.front_channels:
            channel.detach()
        call = self.call
        if call is not None and call.is_close:
            # The channel has closed with the tunnel.
            call.answer(ChannelCloseOk())
        elif call is not None and call.is_commit:
            call.channel.in_doubt = call
        if self.closing_client is not None:
            self.closing_client.tunnel_lost()

    def hang_up(self) -> None:
        if self.tunnel is not None:
            self.tunnel.hang_up()
            self.tunnel = None
            self.attached = False
            self.session.uplink = None

    # Input from the tunnel.

    @property
    def congested(self) -> bool:
        return not self.session.writable or self.unwritten_bytes > self.broker.limits.outgoing_bytes_max

    def take_run(self, run: "kernel.DeliveryRun | kernel.SettleRun") -> None:
        engine = self.broker.engine
        if isinstance(run, kernel.DeliveryRun):
            if self.reads_streams:
                note_offsets(self, run)
            engine.mirror(self.session, run, self.broker.now_ms)
        else:
            engine.relay_confirms(self.session, with_refusals(self, run) if self.has_refusals else run)

    def take_return(self, number: int, payload: bytes, message: kernel.Message) -> None:
        channel = self.channels.get(number)
        # A channel that was closed for a fault found here stays unreported until everything has come back.
        if channel is not None and (not channel.closing or channel.held_count):
            channel.kernel.come_back(message)
            self.session.write_content(number, payload, message)

    # Closing a channel for a fault found here.

    def close_above(self, channel: "FrontChannel") -> None:
        """Closes the channel at the root, too; until the root has done so, nothing else of this client is sent. The
        client gets the fault after everything that the root had to send on the channel."""
        lane, channel.lane = channel.lane, None
        channel.reached = False
        self.drop_call(channel)
        if lane is None:
            channel.answers.give_all()
        else:
            self.closing_count += 1
            lane.close(lambda _method, _message: self._closed_above(channel))

    def _closed_above(self, channel: "FrontChannel") -> None:
        self.closing_count -= 1
        channel.answers.give_all()

    # The client closes its connection.

    def may_release(self) -> bool:
        """Called when the client has closed its connection. Returns True when the client may be released, see
        `ClosingClient`."""
        if self.closing_client is None:
            if self.failed:
                return True
            self.closing_client = ClosingClient(self)
            self.broker.awaiting.closing_client(self)
        return self.closing_client.go_on()

    @property
    def closed_at_root(self) -> bool:
        """The root has everything that the client sent before it closed its connection, and has closed the client."""
        return self.closing_client is not None and self.closing_client.stage is ClosingStage.NOTHING
