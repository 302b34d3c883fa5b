"""Every key of `pandomq.toml`: its section, type, bounds, default, and what it is for.

A key is one field here and nothing else: the file, the environment, `pandomq config` and the settings of a node are
derived from these classes. A name ends in the unit of its numbers (`_bytes`, `_ms`, `_s`, before a `_max`); a text may
bring a unit of its own. A limit of 0 means that there is none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from pandomq import limits
from pandomq.cluster.proxy.limits import ROOT_WAIT_MS
from pandomq.journal.limits import SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, JournalSettings
from pandomq.node.settings import NodeSettings
from pandomq.replica.limits import MEMBERS_MAX
from pandomq.replica.settings import ReplicaSettings

SECRET: Final = {"secret": True}
"""Never shown; may also be given as a file, by the same key with `_file` at its end."""
PRIVATE: Final = {**SECRET, "private": True}
"""And such a file must not be open to everybody."""
ADDRESS: Final = {"address": True}
SHARE_OF_MEMORY: Final = {"share_of_memory": True, "default": "60%"}
"""A size, or a share of the machine's memory; the default's is RabbitMQ 4's."""

_FRAME_BYTES_MAX: Final = min(limits.READ_CHUNK_BYTES, limits.OUTGOING_LOW_BYTES)
"""One read has to hold a whole frame, and so has the buffer of a consumer that is being written to."""
_DEFAULTS: Final = NodeSettings()
_JOURNAL: Final = JournalSettings()
_REPLICA: Final = ReplicaSettings()


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Tls(Section, frozen=True):
    listen: Annotated[str, Meta(description="Where clients connect by TLS: HOST:PORT.", extra=ADDRESS)] = "off"
    certificate: Annotated[Path | None, Meta(description="The broker's certificate and its chain, PEM.")] = None
    key: Annotated[Path | None, Meta(description="The certificate's key, PEM.")] = None
    authorities: Annotated[Path | None, Meta(description="Who signs clients' certificates, PEM.")] = None
    client_certificates: Annotated[
        Literal["ignore", "ask", "require"], Meta(description="Whether clients show a certificate.")
    ] = "ignore"


class Node(Section, frozen=True):
    name: Annotated[str, Meta(description="The broker's name.", extra={"option": "--name"})] = _DEFAULTS.name
    data: Annotated[
        Path | None,
        Meta(description="The broker's directory. Left out: pandomq-data/NAME.", extra={"option": "--data"}),
    ] = None
    listen: Annotated[
        str,
        Meta(description="Where clients connect: HOST:PORT, or off.", extra={**ADDRESS, "option": "--listen"}),
    ] = "127.0.0.1:5672"
    http: Annotated[
        str,
        Meta(
            description="Where the HTTP API, metrics and health checks are: HOST:PORT, or off.",
            extra={**ADDRESS, "option": "--http"},
        ),
    ] = "127.0.0.1:15672"
    proxy_protocol: Annotated[
        bool, Meta(description="Clients come through a proxy that says so by a PROXY header; others are refused.")
    ] = False
    compat_product: Annotated[
        str, Meta(description="The product's name in the server properties, for clients that insist on RabbitMQ.")
    ] = _DEFAULTS.product
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="What is logged: this and what is worse.", extra={"option": "--log-level"}),
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"], Meta(description="How it is logged.", extra={"option": "--log-format"})
    ] = "text"
    tls: Tls = Tls()


class Limits(Section, frozen=True):
    """Fields have the names that they have in `NodeSettings`."""

    memory_bytes_max: Annotated[
        int,
        Meta(
            ge=limits.MIB,
            description="While messages take more, publishers are held back. A size, or a share of the memory.",
            extra={**SHARE_OF_MEMORY, "option": "--memory-mb"},
        ),
    ]
    paging_bytes: Annotated[
        int, Meta(ge=0, description="While messages in queues take more, those at the end leave memory; 0: never.")
    ] = _DEFAULTS.paging_bytes
    heartbeat_s: Annotated[
        int, Meta(ge=0, le=65535, description="Proposed to clients; 0: none.", extra={"option": "--heartbeat"})
    ] = _DEFAULTS.heartbeat_s
    handshake_ms_max: Annotated[int, Meta(ge=1, description="From connecting to connection.open.")] = (
        _DEFAULTS.handshake_ms_max
    )
    consumer_timeout_ms: Annotated[
        int, Meta(ge=0, description="A delivery unacknowledged for longer closes its channel; 0: never.")
    ] = _DEFAULTS.consumer_timeout_ms
    frame_bytes_max: Annotated[
        int, Meta(ge=limits.FRAME_BYTES_MIN, le=_FRAME_BYTES_MAX, description="Proposed to clients.")
    ] = _DEFAULTS.frame_bytes_max
    message_bytes_max: Annotated[
        int, Meta(ge=1, le=limits.TRANSACTION_BYTES_MAX, description="The largest body of a message.")
    ] = _DEFAULTS.message_bytes_max
    channel_max: Annotated[int, Meta(ge=1, le=limits.CHANNEL_ID_MAX, description="Channels of one connection.")] = (
        _DEFAULTS.channel_max
    )
    connections_max: Annotated[int, Meta(ge=1, description="Connections in all.")] = _DEFAULTS.connections_max
    connections_per_user_max: Annotated[int, Meta(ge=0, description="Connections of one user.")] = 0
    connections_per_vhost_max: Annotated[int, Meta(ge=0, description="Connections to one vhost.")] = 0
    queues_max: Annotated[int, Meta(ge=0, description="Queues in all vhosts.")] = 0
    bindings_max: Annotated[int, Meta(ge=0, description="Bindings in all vhosts.")] = 0
    configuration_bytes_max: Annotated[
        int, Meta(ge=0, description="Queues, exchanges, bindings, users, policies: what all brokers share.")
    ] = _DEFAULTS.configuration_bytes_max
    consumers_max: Annotated[int, Meta(ge=0, description="Consumers in all vhosts.")] = 0
    consumers_per_channel_max: Annotated[int, Meta(ge=0, description="Consumers on one channel.")] = 0
    consumers_per_queue_max: Annotated[int, Meta(ge=0, description="Consumers of one queue.")] = 0
    producers_max: Annotated[
        int, Meta(ge=1, description="Publishers that number their messages, as long as they are remembered.")
    ] = _DEFAULTS.producers_max
    producer_age_ms: Annotated[
        int, Meta(ge=1, description="How long they are remembered after their last message.")
    ] = _DEFAULTS.producer_age_ms


class Log(Section, frozen=True):
    store: Annotated[
        Literal["disk", "memory"],
        Meta(
            description="Where the log is. In memory, all is lost when the broker stops.",
            extra={"option": "--memory"},
        ),
    ] = "disk"
    fsync: Annotated[
        Literal["always", "interval", "never"],
        Meta(description="What a confirm means: on the disk, or in the hands of the operating system."),
    ] = "always"
    fsync_interval_ms: Annotated[int, Meta(ge=1, le=60_000, description="With fsync = interval: how often.")] = (
        _JOURNAL.fsync_interval_ms
    )
    segment_bytes: Annotated[
        int, Meta(ge=SEGMENT_BYTES_MIN, le=SEGMENT_BYTES_MAX, description="The size of the log's files.")
    ] = _JOURNAL.segment_bytes
    snapshot_bytes: Annotated[
        int, Meta(ge=SEGMENT_BYTES_MIN, description="A snapshot is taken when the log has grown by this much.")
    ] = _JOURNAL.snapshot_log_bytes
    free_bytes_min: Annotated[
        int, Meta(ge=0, description="While the disk has less free, publishers are held back.")
    ] = _JOURNAL.disk_free_bytes_min
    reserve_bytes: Annotated[
        int, Meta(ge=0, description="Of the disk, kept for acks and clearing up when it is full.")
    ] = _JOURNAL.reserve_bytes
    retain_for_audit_bytes: Annotated[
        int, Meta(ge=0, description="Of the log, kept for an audit when nobody else needs it any more; 0: nothing.")
    ] = _JOURNAL.retain_bytes
    retain_for_audit_ms: Annotated[
        int, Meta(ge=0, description="And for how long; 0: as long as it is not too much.")
    ] = _JOURNAL.retain_ms


class Auth(Section, frozen=True):
    default_user: Annotated[str, Meta(description="The user that a fresh broker has.")] = _DEFAULTS.user
    default_password: Annotated[str, Meta(description="And its password.", extra=SECRET)] = _DEFAULTS.password
    loopback_only_users: Annotated[
        tuple[str, ...], Meta(description="Users who may connect from this machine only.")
    ] = _DEFAULTS.loopback_only_users
    mechanisms: Annotated[
        tuple[str, ...], Meta(description="How clients may log in; EXTERNAL: by the certificate that they show.")
    ] = _DEFAULTS.mechanisms


class ClusterTls(Section, frozen=True):
    certificate: Annotated[Path | None, Meta(description="What this broker shows to others, PEM.")] = None
    key: Annotated[Path | None, Meta(description="The certificate's key, PEM.")] = None
    authorities: Annotated[Path | None, Meta(description="Who signs the brokers' certificates, PEM.")] = None


class Cluster(Section, frozen=True):
    """`cluster` turns them into `ClusterSettings`."""

    key: Annotated[str | None, Meta(description="What the brokers of a cluster share.", extra=PRIVATE)] = None
    primaries: Annotated[
        tuple[str, ...], Meta(description="Who votes, and where the others find it: NAME=HOST:PORT, …")
    ] = ()
    join: Annotated[
        tuple[str, ...],
        Meta(description="Addresses of brokers to join as a secondary: HOST:PORT, …", extra={"option": "--join"}),
    ] = ()
    listen: Annotated[
        str, Meta(description="Where other brokers connect, and nobody else; off: at node.listen.", extra=ADDRESS)
    ] = "off"
    advertise: Annotated[
        str | None, Meta(description="Where clients find this broker. Left out: node.listen.", extra=ADDRESS)
    ] = None
    advertise_http: Annotated[
        str | None, Meta(description="Where other brokers find its HTTP API. Left out: node.http.", extra=ADDRESS)
    ] = None
    access: Annotated[
        Literal["proxy", "redirect"],
        Meta(description="What a broker that is not the root does with clients: serves or redirects them."),
    ] = "proxy"
    root_wait_ms: Annotated[
        int, Meta(ge=1, le=600_000, description="With proxy, how long clients wait for a root before they hear so.")
    ] = ROOT_WAIT_MS
    min_copies: Annotated[int, Meta(ge=1, le=MEMBERS_MAX, description="Disks that a confirmed message is on.")] = (
        _REPLICA.min_copies
    )
    last_man_standing: Annotated[
        bool, Meta(description="Confirm with fewer copies while brokers are missing, with an alarm.")
    ] = _REPLICA.last_man_standing
    lease_ms: Annotated[
        int, Meta(ge=50, le=60_000, description="A root that hears from too few for longer resigns; others take over.")
    ] = _REPLICA.lease_ms
    disk_stall_ms: Annotated[
        int, Meta(ge=1, le=600_000, description="A root whose disk does not answer for longer resigns.")
    ] = _REPLICA.disk_stall_ms
    tls: ClusterTls = ClusterTls()


class Data(Section, frozen=True):
    """`data_port` turns them into addresses."""

    listen: Annotated[
        str | None,
        Meta(description="Where Spark and others read streams in bulk. Left out: 5680, or a free port.", extra=ADDRESS),
    ] = None
    tls_listen: Annotated[
        str | None,
        Meta(description="The same by TLS, with [node.tls]. Left out: 5679, or a free port.", extra=ADDRESS),
    ] = None
    advertise: Annotated[
        str | None, Meta(description="Where clients find data.listen. Left out: at this broker's host.", extra=ADDRESS)
    ] = None
    advertise_tls: Annotated[str | None, Meta(description="The same for data.tls_listen.", extra=ADDRESS)] = None
    proxy_protocol: Annotated[
        bool | None, Meta(description="As node.proxy_protocol, for clients of data.listen. Left out: the same.")
    ] = None


class Configuration(Section, frozen=True):
    node: Node
    cluster: Cluster
    data: Data
    limits: Limits
    log: Log
    auth: Auth
