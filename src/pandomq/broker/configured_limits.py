"""The limits that the configuration sets, with their descriptions."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pandomq import limits

_FRAME_BYTES_MAX: Final = min(limits.READ_CHUNK_BYTES, limits.OUTGOING_LOW_BYTES)
"""One read has to hold a whole frame, and so has the buffer of a consumer that is being written to."""


class ConfiguredLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The `[limits]` section of the configuration, in its order: bounds on the demands of clients and users. The broker
    applies some of them, the node others. A new limit is one field here, and a row in `docs/configuration.md`. A limit
    of 0 means that there is none. The marks in `extra` are those of `cli/config/section`.
    """

    memory_bytes_max: Annotated[
        int,
        Meta(
            ge=limits.MIB,
            description=(
                "While messages take more memory than this, the broker blocks publishers. A size, or a share of "
                "the memory of the machine or of the control group."
            ),
            extra={"share_of_memory": True, "default": "60%", "option": "--memory-mb"},
        ),
    ] = 4 * 1024 * limits.MIB
    """The default of the configuration is RabbitMQ 4's; the number is for nodes without one."""
    paging_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "While messages that wait in queues take more memory than this, the broker moves those at the "
                "end of long queues to the disk, persistent or not, and reads them back in time for their "
                "delivery. 0: never. Messages that are delivered and not acknowledged stay in memory. Needs "
                '`[log] store = "disk"`. See [ADR 6](adr/0006-messages-leave-memory-as-pages.md).'
            ),
        ),
    ] = limits.PAGING_BYTES
    heartbeat_s: Annotated[
        int,
        Meta(
            ge=0,
            le=65535,
            description="The heartbeat interval proposed to clients. 0: none.",
            extra={"option": "--heartbeat"},
        ),
    ] = limits.HEARTBEAT_S
    handshake_ms_max: Annotated[
        int,
        Meta(
            ge=1,
            description=(
                "The longest time from connecting to `connection.open`. The broker closes the socket of a client "
                "that takes longer."
            ),
        ),
    ] = limits.HANDSHAKE_MS_MAX
    stop_ms_max: Annotated[
        int,
        Meta(
            ge=1,
            description=(
                "Time from SIGTERM or SIGINT to the end of the process. A broker that takes longer is terminated."
            ),
        ),
    ] = limits.STOP_MS_MAX
    consumer_timeout_ms: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The time in which a consumer must acknowledge a delivery. Afterwards the broker closes its "
                "channel with 406. 0: no limit."
            ),
        ),
    ] = limits.CONSUMER_TIMEOUT_MS
    frame_bytes_max: Annotated[
        int,
        Meta(
            ge=limits.FRAME_BYTES_MIN,
            le=_FRAME_BYTES_MAX,
            description=(
                "The frame size proposed to clients: 4 KiB to 256 KiB. A larger frame closes the connection with 501."
            ),
        ),
    ] = limits.FRAME_BYTES_MAX
    message_bytes_max: Annotated[
        int,
        Meta(
            ge=1,
            le=limits.TRANSACTION_BYTES_MAX,
            description=(
                "The largest body of a message: up to 256 MiB. A publish with a larger body closes its channel "
                "with 406."
            ),
        ),
    ] = limits.MESSAGE_BYTES_MAX
    channel_max: Annotated[
        int,
        Meta(
            ge=1,
            le=limits.CHANNEL_ID_MAX,
            description="The number of channels of one connection. A further channel closes the connection with 530.",
        ),
    ] = limits.CHANNEL_MAX
    connections_max: Annotated[
        int,
        Meta(
            ge=1,
            description=(
                "The number of connections to this broker. The broker closes the socket of a further connection."
            ),
        ),
    ] = limits.CONNECTIONS_MAX
    connections_per_user_max: Annotated[
        int,
        Meta(
            ge=0,
            description="The number of connections of one user. A further connection is closed with 530. 0: no limit.",
        ),
    ] = 0
    connections_per_vhost_max: Annotated[
        int,
        Meta(
            ge=0,
            description="The number of connections to one vhost. A further connection is closed with 530. 0: no limit.",
        ),
    ] = 0
    queues_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of queues in all vhosts together. Declaring a further queue closes the channel with "
                "406. 0: no limit."
            ),
        ),
    ] = 0
    bindings_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of bindings in all vhosts together. A further binding closes the channel with 406. "
                "0: no limit."
            ),
        ),
    ] = 0
    configuration_bytes_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The total size of queues, exchanges, bindings, users and policies, which all brokers share. "
                "Above the limit a declare or a binding closes its channel with 406, and a change over HTTP is "
                "refused. 0: no limit."
            ),
        ),
    ] = limits.CONFIGURATION_BYTES_MAX
    """The part of the state that all brokers of a cluster have."""
    consumers_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of consumers in all vhosts together. A further consumer closes its channel with 406. "
                "0: no limit."
            ),
        ),
    ] = 0
    consumers_per_channel_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of consumers on one channel. A further consumer closes the connection with 530. 0: "
                "no limit."
            ),
        ),
    ] = 0
    consumers_per_queue_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of consumers of one queue. A further consumer closes its channel with 406. 0: no limit."
            ),
        ),
    ] = 0
    incomplete_per_user_bytes_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "Memory of one user's messages that have arrived in part. Above the limit the broker closes the "
                "connection of this user that has the most, with 506. 0: no limit per user. Two further limits "
                "always apply: two messages of the largest size for one connection, and a quarter of "
                "`memory_bytes_max` for all users."
            ),
        ),
    ] = limits.INCOMPLETE_PER_USER_BYTES_MAX
    transaction_per_connection_bytes_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The size of one connection's publishes that wait for `tx.commit`. A publish above the limit "
                "closes its channel with 406. 0: no limit per connection. The limit for one channel is always "
                "256 MiB."
            ),
        ),
    ] = limits.TRANSACTION_PER_CONNECTION_BYTES_MAX
    transaction_per_user_bytes_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The size of one user's publishes that wait for `tx.commit`. A publish above the limit closes "
                "its channel with 406. The broker never uses more than an eighth of `memory_bytes_max`."
            ),
        ),
    ] = limits.TRANSACTION_PER_USER_BYTES_MAX
    producers_max: Annotated[
        int,
        Meta(
            ge=1,
            description=(
                "The number of publishers with numbered messages that the broker remembers. Above the limit it "
                "forgets the one that was silent for longest. See [deduplication](deduplication.md)."
            ),
        ),
    ] = limits.NAMED_PRODUCERS_MAX
    producers_per_user_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of one user's publishers with numbered messages that the broker remembers. Above the "
                "limit it forgets that user's publisher that was silent for longest. 0: no limit."
            ),
        ),
    ] = limits.NAMED_PRODUCERS_PER_USER_MAX
    producers_per_user_bytes_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "Memory for one user's publishers with numbered messages. Above the limit the broker forgets that "
                "user's publisher that was silent for longest. 0: no limit."
            ),
        ),
    ] = limits.NAMED_PRODUCERS_PER_USER_BYTES_MAX
    producer_age_ms: Annotated[
        int,
        Meta(
            ge=1,
            description=(
                "The time for which the broker remembers a publisher with numbered messages after its last message."
            ),
        ),
    ] = limits.NAMED_PRODUCER_AGE_MS
    staged_attempts_per_user_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of one user's attempts that have [staged](deduplication.md#staged-batches) parts of "
                "a batch and are not published. A further part is refused with 406. 0: no limit. The limit for "
                "all users is 10,000."
            ),
        ),
    ] = limits.STAGED_ATTEMPTS_PER_USER_MAX
    staged_per_user_bytes_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The total size of one user's messages that are staged and not published. A further part is "
                "refused with 406. 0: no limit."
            ),
        ),
    ] = limits.STAGED_PER_USER_BYTES_MAX
    leases_per_user_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of [leases](leases.md) of queues by one user. A further lease is refused with 406. "
                "0: no limit. The limit for all users is 1,024."
            ),
        ),
    ] = limits.LEASES_PER_USER_MAX
    stored_offsets_per_user_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of names under which one user stores offsets of one stream. A further name is "
                "refused with 406. 0: no limit. The limit for all users is 1,024."
            ),
        ),
    ] = limits.STREAM_STORED_OFFSETS_PER_USER_MAX
    stored_offsets_per_user_total_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of names under which one user stores offsets, over all streams. A further name is refused "
                "with 406. 0: no limit."
            ),
        ),
    ] = limits.STREAM_STORED_OFFSETS_PER_USER_TOTAL_MAX
    data_connections_per_user_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of one user's connections to this broker's [data port](data-port.md). A further "
                "connection is refused with 503. 0: no limit. The limit for all users is 1,024."
            ),
        ),
    ] = limits.DATA_CONNECTIONS_PER_USER_MAX
    data_per_user_bytes_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "Memory that large requests of one user to the data port take, from their announcement until "
                "they are answered. Above the limit further requests of this user wait. 0: no limit. The limit "
                "for all users is 128 MiB."
            ),
        ),
    ] = limits.DATA_PER_USER_BYTES_MAX
    data_request_ms_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The longest time from the first byte of a request to the data port to its last byte. The broker "
                "closes the connection of a client that takes longer. 0: no limit."
            ),
        ),
    ] = limits.DATA_REQUEST_MS_MAX
    http_connections_max: Annotated[
        int,
        Meta(
            ge=1,
            description=(
                "The number of HTTP connections to this broker. Above the limit the broker closes the one that has "
                "been idle for longest. 64 more may use health checks and metrics."
            ),
        ),
    ] = limits.HTTP_CONNECTIONS_MAX
    http_connections_per_network_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of HTTP connections from one IPv4 address or one /64 network of IPv6; three times as many "
                "from the loopback. Above the limit the broker closes the connection from that network that has been "
                "idle for longest. 0: no limit."
            ),
        ),
    ] = limits.HTTP_CONNECTIONS_PER_NETWORK_MAX
    http_requests_per_user_max: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "The number of HTTP requests of one user that are in progress. A further request is refused with 429. "
                "0: no limit."
            ),
        ),
    ] = limits.HTTP_REQUESTS_PER_USER_MAX
    http_bytes_max: Annotated[
        int,
        Meta(
            ge=limits.HTTP_BYTES_MIN,
            description=(
                "Memory for HTTP request bodies and for messages that are answered over HTTP. Above the limit "
                "requests with bodies are refused with 503."
            ),
        ),
    ] = limits.HTTP_BYTES_MAX
    http_per_user_bytes_max: Annotated[
        int,
        Meta(
            ge=limits.HTTP_BYTES_MIN,
            description=(
                "The memory for the bodies and answers of one user's HTTP requests. Above the limit requests with "
                "bodies are refused with 503."
            ),
        ),
    ] = limits.HTTP_PER_USER_BYTES_MAX
