"""The objects that a broker lists: their paths, and the names of their columns.

A column is a field of the API's answer, by a dotted path, or a name that this module gives to such a path: shorter ones
for tables, and those of rabbitmqctl where they differ from the API's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec


class Noun(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    """Below /api."""
    vhosts_first: bool = False
    """The path for one vhost is vhosts/VHOST/PATH, as in RabbitMQ; otherwise PATH/VHOST."""
    shown: tuple[str, ...]
    """The columns of a table, unless others are requested."""
    names: Mapping[str, str] = {}
    """Columns with another name in the API."""
    constants: Mapping[str, str] = {}
    """Columns that the API does not have because they are always the same."""
    of_type: str = ""
    """The type of the items that are listed; all if it is empty."""

    def value(self, item: Mapping[str, Any], column: str) -> object:
        """The column of one item; None if it has no such field."""
        if column in self.constants:
            return self.constants[column]
        value: Any = item
        for part in self.names.get(column, column).split("."):
            if not isinstance(value, Mapping):
                return None
            value = value.get(part)
        return value

    def unknown_columns(self, items: list[dict[str, Any]], columns: list[str]) -> list[str]:
        """Columns that neither this module nor any item has; without items it is unknown."""
        known = {*self.shown, *self.names, *self.constants}
        unknown = [column for column in columns if column not in known]
        return [column for column in unknown if items and not any(column.partition(".")[0] in item for item in items)]


QUEUES: Final = Noun(
    path="queues",
    shown=("vhost", "name", "type", "policy", "ready", "unacked", "messages", "consumers", "in/s", "out/s"),
    names={
        "ready": "messages_ready",
        "unacked": "messages_unacknowledged",
        "bytes": "message_bytes",
        "in/s": "message_stats.publish_details.rate",
        "out/s": "message_stats.deliver_get_details.rate",
    },
)
STREAMS: Final = Noun(
    path="queues",
    shown=("vhost", "name", "policy", "first", "last", "messages", "bytes", "segments", "consumers", "in/s", "out/s"),
    names={
        "first": "first_offset",
        "last": "committed_offset",
        "bytes": "message_bytes",
        "in/s": "message_stats.publish_details.rate",
        "out/s": "message_stats.deliver_get_details.rate",
    },
    of_type="stream",
)
EXCHANGES: Final = Noun(
    path="exchanges",
    shown=("vhost", "name", "type", "durable", "auto_delete", "internal", "policy", "arguments"),
)
BINDINGS: Final = Noun(
    path="bindings",
    shown=("vhost", "source", "routing_key", "destination_type", "destination", "arguments"),
    names={
        "source_name": "source",
        "destination_name": "destination",
        "destination_kind": "destination_type",
    },
    constants={"source_kind": "exchange"},
)
CONNECTIONS: Final = Noun(
    path="connections",
    vhosts_first=True,
    shown=("name", "user", "vhost", "state", "tls", "client", "channels", "received/s", "sent/s"),
    names={
        "tls": "ssl",
        "client": "client_properties.product",
        "received/s": "recv_oct_details.rate",
        "sent/s": "send_oct_details.rate",
        "pid": "name",
    },
)
CHANNELS: Final = Noun(
    path="channels",
    vhosts_first=True,
    shown=("name", "user", "vhost", "confirm", "transactional", "prefetch", "consumers", "unacked", "unconfirmed"),
    names={
        "prefetch": "prefetch_count",
        "consumers": "consumer_count",
        "unacked": "messages_unacknowledged",
        "unconfirmed": "messages_unconfirmed",
        "pid": "name",
        "connection": "connection_details.name",
    },
)
CONSUMERS: Final = Noun(
    path="consumers",
    shown=("vhost", "queue", "tag", "channel", "ack", "prefetch", "exclusive", "active", "arguments"),
    names={
        "vhost": "queue.vhost",
        "queue": "queue.name",
        "queue_name": "queue.name",
        "tag": "consumer_tag",
        "channel": "channel_details.name",
        "channel_pid": "channel_details.name",
        "ack": "ack_required",
        "prefetch": "prefetch_count",
    },
)
USERS: Final = Noun(path="users", shown=("name", "tags"), names={"user": "name"})
VHOSTS: Final = Noun(path="vhosts", shown=("name", "description", "messages"))
PERMISSIONS: Final = Noun(path="permissions", vhosts_first=True, shown=("vhost", "user", "configure", "write", "read"))
TOPIC_PERMISSIONS: Final = Noun(
    path="topic-permissions", vhosts_first=True, shown=("vhost", "user", "exchange", "write", "read")
)
_POLICY_COLUMNS: Final = ("vhost", "name", "pattern", "apply-to", "priority", "definition")
POLICIES: Final = Noun(path="policies", shown=_POLICY_COLUMNS)
OPERATOR_POLICIES: Final = Noun(path="operator-policies", shown=_POLICY_COLUMNS)
