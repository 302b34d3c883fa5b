"""The limits of one broker."""

import msgspec

from pandomq import limits
from pandomq.broker.configured_limits import ConfiguredLimits


class TableLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is remembered, and for how long. No configuration changes it, and it is the same on all brokers of a
    cluster: each of them forgets by itself. Simulated brokers remember less, so that they forget something."""

    relayed_producers_max: int = limits.PRODUCERS_REMEMBERED_MAX
    relayed_producer_age_ms: int = limits.PRODUCER_REMEMBERED_MS
    fenced_connections_max: int = limits.PRODUCER_CONNECTIONS_FENCED_MAX
    staged_queries_max: int = limits.STAGED_QUERIES_MAX
    staged_queries_per_user_max: int = limits.STAGED_QUERIES_PER_USER_MAX
    staged_query_age_ms: int = limits.STAGED_QUERY_AGE_MS
    staged_left_alone_ms: int = limits.STAGED_LEFT_ALONE_MS
    stored_offsets_max: int = limits.STREAM_STORED_OFFSETS_MAX


class BrokerLimits(ConfiguredLimits, frozen=True, kw_only=True):
    """These, and others that no configuration changes."""

    route_plans_max: int = limits.ROUTE_PLANS_CACHED_MAX
    outgoing_bytes_max: int = limits.OUTGOING_HIGH_BYTES
    transaction_bytes_max: int = limits.TRANSACTION_BYTES_MAX
    """The bytes of one channel; others are of all channels of a connection, of a user, and of the broker."""
    transactions_bytes_max: int = 0
    tables: TableLimits = TableLimits()
    dead_letter_rounds_max: int = 16
    """How often, within one batch, dead letters may push other messages out of their queues; the rest waits for the
    next batch."""
