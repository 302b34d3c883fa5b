"""Messages over HTTP: publish one, get some. For people and tests, not for traffic."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pandomq.admin import limits
from pandomq.admin.exchange_rows import exchange_of
from pandomq.admin.field_json import amqp_table, json_table, json_text
from pandomq.admin.names import short
from pandomq.admin.refusals import Refusal, bad_request, of_fault, unavailable
from pandomq.admin.responses import Json
from pandomq.errors import ChannelFault, Fault
from pandomq.methods import BasicGetOk, BasicNack, BasicPublish
from pandomq.properties import PERSISTENT, Properties, decode_header, encode_header

if TYPE_CHECKING:
    from pandomq.admin.call import Call
    from pandomq.broker.views import QueueView
    from pandomq.node.local_client import Answer

_INTEGERS: Final = {"delivery_mode": 255, "priority": 255, "timestamp": 2**64 - 1}
_SETTLEMENTS: Final[dict[str, bool | None]] = {
    "ack_requeue_true": True,
    "reject_requeue_true": True,
    "reject_requeue_false": False,
    # Taken for good, with the get itself.
    "ack_requeue_false": None,
}


async def publish(call: Call) -> Json:
    given, routing_key, payload, encoding = call.required("properties", "routing_key", "payload", "payload_encoding")
    if not isinstance(payload, str):
        raise bad_request("payload_not_string")
    if not isinstance(routing_key, str):
        raise bad_request("routing_key is not a string")
    body = _decoded(payload, encoding)
    header = encode_header(len(body), _properties(given))
    exchange = short("exchange", exchange_of(call.path["exchange"]))
    method = BasicPublish(exchange, short("routing_key", routing_key), mandatory=True)
    if call.views.alarms():
        raise unavailable("publishers are held back: low on memory")
    try:
        async with call.client(call.path["vhost"]) as client:
            return Json({"routed": await client.publish(method, header, body)})
    except ChannelFault as fault:
        # Whatever is wrong, RabbitMQ finds the request bad, and names the code.
        raise bad_request(str(fault)) from None


async def get(call: Call) -> Json:
    count, mode, encoding = call.required("count", "ackmode", "encoding")
    truncate = call.value("truncate")
    if mode not in _SETTLEMENTS:
        raise bad_request(f"unknown ackmode '{mode}': expected one of {', '.join(_SETTLEMENTS)}")
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    queue = short("queue", call.path["queue"])
    wanted = min(_integer(count), limits.GET_MESSAGES_MAX)
    length_max = None if truncate is None else _integer(truncate)
    requeue = _SETTLEMENTS[mode]
    view = call.views.queue(call.path["vhost"], queue)
    try:
        async with call.client(call.path["vhost"]) as client:
            messages = await client.get(queue, wanted, no_ack=requeue is None)
            if messages and requeue is not None:
                last = messages[-1].method
                assert isinstance(last, BasicGetOk)
                await client.settle(BasicNack(last.delivery_tag, multiple=True, requeue=requeue))
    except ChannelFault as fault:
        raise _get_refusal(fault) from None
    return Json([{**_shown(message, encoding, length_max), "level": _level(view, message)} for message in messages])


def _level(view: QueueView | None, message: Answer) -> str | None:
    if view is None:
        return None
    persistent = decode_header(message.header)[1].delivery_mode == PERSISTENT
    return view.level if persistent else view.transient_level


def _get_refusal(fault: Fault) -> Refusal:
    """The same for a get, but what is missing or forbidden is told apart."""
    refusal = of_fault(fault)
    refusal.reason = str(fault) if refusal.status == bad_request("").status else fault.reply_text
    return refusal


def _decoded(payload: str, encoding: object) -> bytes:
    if encoding == "string":
        return payload.encode()
    if encoding != "base64":
        raise bad_request(["unsupported_encoding", encoding])
    try:
        return b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(["not_base64", payload]) from None


def _integer(value: object) -> int:
    """RabbitMQ takes "5" for 5."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise bad_request(["not_integer", value])
    return value


def _properties(given: Any) -> Properties:
    """What the protocol does not know is passed over, as in RabbitMQ."""
    if given == []:
        given = {}
    if not isinstance(given, dict):
        raise bad_request("properties_not_object")
    values: dict[str, Any] = {}
    for name in Properties.__struct_fields__:
        if name not in given:
            continue
        value = given[name]
        if name == "headers":
            values[name] = amqp_table(value)
        elif name in _INTEGERS:
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _INTEGERS[name]:
                raise bad_request(["not_int", name])
            values[name] = value
        elif isinstance(value, str):
            values[name] = short(name, value)
        else:
            raise bad_request(["not_string", name])
    return Properties(**values)


def _shown(message: Answer, encoding: str, length_max: int | None) -> dict[str, Any]:
    method = message.method
    assert isinstance(method, BasicGetOk)
    payload, payload_encoding = _encoded(message.body[:length_max], encoding)
    return {
        "payload_bytes": len(message.body),
        "redelivered": method.redelivered,
        "exchange": json_text(method.exchange),
        "routing_key": json_text(method.routing_key),
        "message_count": method.message_count,
        "properties": _shown_properties(message.header),
        "payload": payload,
        "payload_encoding": payload_encoding,
    }


def _encoded(body: bytes, encoding: str) -> tuple[str, str]:
    if encoding == "auto":
        try:
            return body.decode("utf-8"), "string"
        except UnicodeDecodeError:
            pass
    return b64encode(body).decode("ascii"), "base64"


def _shown_properties(header: bytes) -> dict[str, Any]:
    properties = msgspec.structs.asdict(decode_header(header)[1])
    return {
        name: json_table(value) if name == "headers" else json_text(value) if isinstance(value, str) else int(value)
        for name, value in properties.items()
        if value is not None
    }
