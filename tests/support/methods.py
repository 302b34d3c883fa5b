"""Every method of AMQP 0-9-1, of RabbitMQ's extensions and of ours between brokers: its ids and its arguments.

`encode("queue.declare", queue="q", durable=True)` returns the payload of a method frame; arguments that are not named
are empty. `decode(payload)` returns a `Method` whose arguments are attributes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.fields import Reader, argument, parse_argument

# Kinds of arguments: s a short and S a long string, F a table, t a bit; B H I Q unsigned integers of 8 to 64 bits.
_LAYOUTS = """
10.10 connection.start version_major:B version_minor:B server_properties:F mechanisms:S locales:S
10.11 connection.start-ok client_properties:F mechanism:s response:S locale:s
10.20 connection.secure challenge:S
10.21 connection.secure-ok response:S
10.30 connection.tune channel_max:H frame_max:I heartbeat:H
10.31 connection.tune-ok channel_max:H frame_max:I heartbeat:H
10.40 connection.open virtual_host:s capabilities:s insist:t
10.41 connection.open-ok known_hosts:s
10.50 connection.close reply_code:H reply_text:s class_id:H method_id:H
10.51 connection.close-ok
10.60 connection.blocked reason:s
10.61 connection.unblocked
10.70 connection.update-secret new_secret:S reason:s
10.71 connection.update-secret-ok
20.10 channel.open out_of_band:s
20.11 channel.open-ok channel_id:S
20.20 channel.flow active:t
20.21 channel.flow-ok active:t
20.40 channel.close reply_code:H reply_text:s class_id:H method_id:H
20.41 channel.close-ok
30.10 access.request realm:s exclusive:t passive:t active:t write:t read:t
30.11 access.request-ok ticket:H
40.10 exchange.declare ticket:H exchange:s type:s passive:t durable:t auto_delete:t internal:t no_wait:t arguments:F
40.11 exchange.declare-ok
40.20 exchange.delete ticket:H exchange:s if_unused:t no_wait:t
40.21 exchange.delete-ok
40.30 exchange.bind ticket:H destination:s source:s routing_key:s no_wait:t arguments:F
40.31 exchange.bind-ok
40.40 exchange.unbind ticket:H destination:s source:s routing_key:s no_wait:t arguments:F
40.51 exchange.unbind-ok
50.10 queue.declare ticket:H queue:s passive:t durable:t exclusive:t auto_delete:t no_wait:t arguments:F
50.11 queue.declare-ok queue:s message_count:I consumer_count:I
50.20 queue.bind ticket:H queue:s exchange:s routing_key:s no_wait:t arguments:F
50.21 queue.bind-ok
50.30 queue.purge ticket:H queue:s no_wait:t
50.31 queue.purge-ok message_count:I
50.40 queue.delete ticket:H queue:s if_unused:t if_empty:t no_wait:t
50.41 queue.delete-ok message_count:I
50.50 queue.unbind ticket:H queue:s exchange:s routing_key:s arguments:F
50.51 queue.unbind-ok
60.10 basic.qos prefetch_size:I prefetch_count:H global_:t
60.11 basic.qos-ok
60.20 basic.consume ticket:H queue:s consumer_tag:s no_local:t no_ack:t exclusive:t no_wait:t arguments:F
60.21 basic.consume-ok consumer_tag:s
60.30 basic.cancel consumer_tag:s no_wait:t
60.31 basic.cancel-ok consumer_tag:s
60.40 basic.publish ticket:H exchange:s routing_key:s mandatory:t immediate:t
60.50 basic.return reply_code:H reply_text:s exchange:s routing_key:s
60.60 basic.deliver consumer_tag:s delivery_tag:Q redelivered:t exchange:s routing_key:s
60.70 basic.get ticket:H queue:s no_ack:t
60.71 basic.get-ok delivery_tag:Q redelivered:t exchange:s routing_key:s message_count:I
60.72 basic.get-empty cluster_id:s
60.80 basic.ack delivery_tag:Q multiple:t
60.90 basic.reject delivery_tag:Q requeue:t
60.100 basic.recover-async requeue:t
60.110 basic.recover requeue:t
60.111 basic.recover-ok
60.120 basic.nack delivery_tag:Q multiple:t requeue:t
60.250 basic.settle number:Q rows:S
60.251 basic.settle-ok number:Q
60.252 basic.held consumer_tag:s count:I
85.10 confirm.select no_wait:t
85.11 confirm.select-ok
90.10 tx.select
90.11 tx.select-ok
90.20 tx.commit
90.21 tx.commit-ok
90.30 tx.rollback
90.31 tx.rollback-ok
"""

CONTENT_METHODS = frozenset({"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"})


@dataclass(frozen=True)
class Layout:
    name: str
    class_id: int
    method_id: int
    arguments: tuple[tuple[str, str], ...]


def _read_layouts() -> dict[str, Layout]:
    layouts = {}
    for line in _LAYOUTS.strip().splitlines():
        ids, name, *arguments = line.split()
        class_id, method_id = map(int, ids.split("."))
        pairs = tuple((part.split(":")[0], part.split(":")[1]) for part in arguments)
        layouts[name] = Layout(name, class_id, method_id, pairs)
    return layouts


LAYOUTS = _read_layouts()
_BY_ID = {(layout.class_id, layout.method_id): layout for layout in LAYOUTS.values()}
_EMPTY: dict[str, Any] = {"F": {}, "s": "", "S": b"", "t": False}


@dataclass
class Method:
    """A decoded method; a method with content also has its properties and body."""

    name: str
    arguments: dict[str, Any]
    channel: int = 0
    header: bytes = b""
    properties: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""

    def __getattr__(self, argument_name: str) -> Any:
        try:
            return self.__dict__["arguments"][argument_name]
        except KeyError:
            raise AttributeError(argument_name) from None

    @property
    def headers(self) -> dict[str, Any]:
        found: dict[str, Any] = self.properties.get("headers", {})
        return found


def encode(name: str, **given: Any) -> bytes:
    layout = LAYOUTS[name]
    unknown = set(given) - {argument_name for argument_name, _ in layout.arguments}
    assert not unknown, f"{name} has no {unknown}"
    out = bytearray(layout.class_id.to_bytes(2, "big") + layout.method_id.to_bytes(2, "big"))
    bits: list[bool] = []
    for argument_name, kind in layout.arguments:
        value = given.get(argument_name, _EMPTY.get(kind, 0))
        if kind == "t":
            bits.append(bool(value))
            continue
        out += _packed_bits(bits) + argument(kind, value)
        bits = []
    return bytes(out + _packed_bits(bits))


def _packed_bits(bits: list[bool]) -> bytes:
    return bytes([sum(bit << place for place, bit in enumerate(bits))]) if bits else b""


def decode(payload: bytes) -> Method:
    reader = Reader(payload)
    layout = _BY_ID[reader.number("H"), reader.number("H")]
    found: dict[str, Any] = {}
    bits_byte, bits_used = 0, 8
    for argument_name, kind in layout.arguments:
        if kind != "t":
            bits_used = 8
            found[argument_name] = parse_argument(reader, kind)
            continue
        if bits_used == 8:
            bits_byte, bits_used = reader.number("B"), 0
        found[argument_name] = bool(bits_byte >> bits_used & 1)
        bits_used += 1
    assert reader.position == len(payload), f"bytes left over in {layout.name}"
    return Method(layout.name, found)
