"""The frozen copies themselves, of data that only the node has; see `views`."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pandomq.broker.client_views import ChannelView, ConsumerView
from pandomq.fieldtable import FieldTable


class ListenerView(msgspec.Struct, frozen=True):
    protocol: str
    """amqp, amqp/ssl, http"""
    host: str
    port: int


class MemberView(msgspec.Struct, frozen=True):
    name: str
    role: str
    address: str
    """The address for clients, or that at which it is dialed if the first is not known."""
    in_sync: bool | None
    """Whether the broker is in sync. Values here and below that only the root knows are None on other brokers."""
    log_index: int | None
    commit_index: int | None
    lag_bytes: int | None
    connections: int | None = None
    """The number of clients' connections; None if the broker is down, or has not reported it."""


class ElectionView(msgspec.Struct, frozen=True):
    """A root that this broker learned of."""

    at_ms: int
    term: int
    root: str
    missing_ms: int
    """How long no root was known before."""


class PeerLinkView(msgspec.Struct, frozen=True):
    """The link to another broker, in both directions."""

    name: str
    address: str
    """The address at which it is dialed."""
    amqp: str
    """The addresses for its clients, and of its HTTP API; empty while they are not known."""
    http: str
    version: str
    state: str
    """`linked`, or the missing part and the reason."""
    linked: bool
    since_ms: int
    """The time at which the state last changed."""
    waiting_bytes: int
    """Bytes that the other side has not taken yet."""
    dropped: int
    """Messages that it did not get, since it did not take those before them."""


class ClusterFacts(NamedTuple):
    """The log's facts about the cluster."""

    role: str
    """The role of this broker."""
    epoch: int
    term: int
    root: str | None
    members: tuple[MemberView, ...]
    elections: tuple[ElectionView, ...] = ()
    """The newest is the last."""
    election_count: int = 0
    alarm_texts: tuple[str, ...] = ()


class ClusterView(msgspec.Struct, frozen=True):
    cluster: str
    name: str
    """The name of the reporting broker."""
    role: str
    epoch: int
    term: int
    root: str | None
    members: tuple[MemberView, ...]
    alarms: tuple[str, ...]
    alarm_texts: tuple[str, ...]
    """The texts of the cluster's alarms."""
    elections: tuple[ElectionView, ...]
    election_count: int
    """The number since the process started."""
    links: tuple[PeerLinkView, ...]
    kernel: str
    version: str


class SyncTimesView(msgspec.Struct, frozen=True):
    """Syncs of the log, since the process started."""

    count: int
    total_s: float
    longest_s: float


class PassesView(msgspec.Struct, frozen=True):
    """Passes of the event loop, since the process started."""

    count: int
    total_s: float
    longest_s: float


class LinkView(msgspec.Struct, frozen=True):
    """An open connection of a client."""

    name: str
    peer: tuple[str, int]
    local: tuple[str, int]
    user: str
    vhost: str
    state: str
    mechanism: str
    tls: bool
    channels: int
    frame_max: int
    channel_max: int
    heartbeat_s: int
    connected_ms: int
    client_properties: FieldTable
    received_bytes: int
    received_count: int
    sent_bytes: int
    sent_count: int
    pending_bytes: int


class LinkChannelView(msgspec.Struct, frozen=True):
    connection: str
    peer: tuple[str, int]
    channel: ChannelView


class LinkConsumerView(msgspec.Struct, frozen=True):
    connection: str
    peer: tuple[str, int]
    user: str
    consumer: ConsumerView


class QueueUseView(msgspec.Struct, frozen=True):
    """Figures of one queue that a listing does not need."""

    consumers: tuple[LinkConsumerView, ...]
    exclusive_consumer_tag: str | None
    single_active_consumer_tag: str | None


class BrokerCounters(msgspec.Struct, frozen=True):
    """Counted since the broker started, updated once per batch."""

    published: int
    unroutable: int
    delivered: int
    redelivered: int
    acked: int
    confirmed: int


class QueueSize(NamedTuple):
    """The parts of sums: cheaper than a QueueView."""

    vhost: str
    ready: int
    ready_bytes: int
    unacked: int
    consumers: int


class NodeView(msgspec.Struct, frozen=True):
    name: str
    uptime_ms: int
    listeners: tuple[ListenerView, ...]
    memory_alarm: bool
    disk_alarm: bool
    held_messages: int
    held_bytes: int
    memory_bytes_max: int
    connections: int
    connections_max: int
    log_index: int
    log_bytes: int
