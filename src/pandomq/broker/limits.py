"""What one broker allows: the part of the limits that its configuration may change."""

import msgspec

from pandomq import limits


class BrokerLimits(msgspec.Struct, frozen=True, kw_only=True):
    message_bytes_max: int = limits.MESSAGE_BYTES_MAX
    consumer_timeout_ms: int = limits.CONSUMER_TIMEOUT_MS
    """How long a delivery may stay unacknowledged; 0 is forever."""
    route_plans_max: int = limits.ROUTE_PLANS_CACHED_MAX
    outgoing_bytes_max: int = limits.OUTGOING_HIGH_BYTES
    transaction_bytes_max: int = limits.TRANSACTION_BYTES_MAX
    connections_per_user_max: int = 0
    """0 means no limit, here and below."""
    connections_per_vhost_max: int = 0
    queues_max: int = 0
    """Queues, bindings and consumers are counted over all vhosts."""
    bindings_max: int = 0
    configuration_bytes_max: int = limits.CONFIGURATION_BYTES_MAX
    """Exchanges, shared queues, bindings, users, policies: what all brokers of a cluster know."""
    consumers_max: int = 0
    consumers_per_channel_max: int = 0
    consumers_per_queue_max: int = 0
    producers_max: int = limits.NAMED_PRODUCERS_MAX
    """Publishers that name themselves and number their messages: so many are remembered,"""
    producer_age_ms: int = limits.NAMED_PRODUCER_AGE_MS
    """and for so long after their last message."""
    dead_letter_rounds_max: int = 16
    """How often, within one batch, dead letters may push other messages out of their queues; the rest waits for the
    next batch."""
