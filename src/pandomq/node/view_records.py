"""The frozen copies themselves, of what only the node knows; see `views`."""

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
    """Where clients find it; where it is dialed if that is not known."""
    in_sync: bool | None
    """None, here and below, for what only the root knows."""
    log_index: int | None
    commit_index: int | None
    lag_bytes: int | None
    connections: int | None = None
    """Of clients; None if it is not there, or has not said."""


class ElectionView(msgspec.Struct, frozen=True):
    """A root that was heard of."""

    at_ms: int
    term: int
    root: str
    missing_ms: int
    """How long none was known before."""


class PeerLinkView(msgspec.Struct, frozen=True):
    """The link to another broker, in both directions."""

    name: str
    address: str
    """Where it is dialed."""
    amqp: str
    """Where its clients find it, and where its HTTP API is; empty while that is not known."""
    http: str
    version: str
    state: str
    """`linked`, or what is missing and why."""
    linked: bool
    since_ms: int
    """When that became so."""
    waiting_bytes: int
    """Not taken by the other side yet."""
    dropped: int
    """Messages that it did not get, since it did not take those before them."""


class ClusterFacts(NamedTuple):
    """What the log knows of the cluster."""

    role: str
    """Of this broker."""
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
    """Of the broker that says all this."""
    role: str
    epoch: int
    term: int
    root: str | None
    members: tuple[MemberView, ...]
    alarms: tuple[str, ...]
    alarm_texts: tuple[str, ...]
    """What there is to say about those of the cluster."""
    elections: tuple[ElectionView, ...]
    election_count: int
    """Since the process started."""
    links: tuple[PeerLinkView, ...]
    kernel: str
    version: str


class SyncTimesView(msgspec.Struct, frozen=True):
    """Of the log, since the process started."""

    count: int
    total_s: float
    longest_s: float


class PassesView(msgspec.Struct, frozen=True):
    """Of the event loop, since the process started."""

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
    """Of one queue, what a listing does without."""

    consumers: tuple[LinkConsumerView, ...]
    exclusive_consumer_tag: str | None
    single_active_consumer_tag: str | None


class CountersView(msgspec.Struct, frozen=True):
    """Since the broker started, kept once a batch."""

    published: int
    unroutable: int
    delivered: int
    redelivered: int
    acked: int
    confirmed: int


class QueueSize(NamedTuple):
    """What sums are made of: cheaper than a QueueView."""

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
