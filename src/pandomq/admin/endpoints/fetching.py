"""Gets messages from a queue over HTTP. For people and tests, not for traffic.

Each message is taken, encoded and dropped before the next one is taken; what the broker keeps is the answer, whose size
is limited. All messages are settled at the end: one that has no room in the answer goes back to the queue.
"""

from __future__ import annotations

import asyncio
import codecs
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pandomq.admin import limits
from pandomq.admin.field_json import json_table, json_text
from pandomq.admin.names import short
from pandomq.admin.refusals import Refusal, bad_request, of_fault, too_large
from pandomq.admin.responses import Encoded
from pandomq.errors import ChannelFault, Fault
from pandomq.methods import BasicAck, BasicGetOk, BasicNack
from pandomq.properties import PERSISTENT, Properties, decode_header

if TYPE_CHECKING:
    from pandomq.admin.broker_client import BrokerClient
    from pandomq.admin.call import HttpCall
    from pandomq.broker.views import QueueView
    from pandomq.node.clients.local_client import MethodReply

_SETTLEMENTS: Final[dict[str, bool | None]] = {
    "ack_requeue_true": True,
    "reject_requeue_true": True,
    "reject_requeue_false": False,
    # Acked.
    "ack_requeue_false": None,
}
_ENCODER: Final = msgspec.json.Encoder()


class FetchOptions(msgspec.Struct, frozen=True):
    """How a request wants the messages."""

    base64: bool
    """Also a body that is text."""
    length_max: int | None
    view: QueueView | None


async def get(call: HttpCall) -> Encoded:
    count, mode, encoding = call.required("count", "ackmode", "encoding")
    truncate = call.value("truncate")
    if not isinstance(mode, str) or mode not in _SETTLEMENTS:
        raise bad_request(f"unknown ackmode '{mode}': expected one of {', '.join(_SETTLEMENTS)}")
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    queue = short("queue", call.path["queue"])
    wanted = min(_integer(count), limits.GET_MESSAGES_MAX)
    length_max = None if truncate is None else _integer(truncate)
    form = FetchOptions(encoding == "base64", length_max, call.views.queue(call.path["vhost"], queue))
    try:
        async with call.client(call.path["vhost"]) as client:
            answer, last_tag = await _taken(client, queue, wanted, form)
            if last_tag:
                # Otherwise the messages return to the queue when this client of the broker closes.
                call.check_client_waits()
                await client.settle(_settlement(last_tag, _SETTLEMENTS[mode]))
    except ChannelFault as fault:
        raise _refusal(fault) from None
    return Encoded(memoryview(answer))


async def _taken(client: BrokerClient, queue: str, wanted: int, form: FetchOptions) -> tuple[bytearray, int]:
    """The messages as JSON, and the tag of the last one. Raises Refusal (413) if the first one is too large."""
    answer = bytearray(b"[")
    last_tag = 0
    for _ in range(wanted):
        message = await client.get(queue)
        if message is None:
            break
        # One byte for what precedes the row, and one for the end of the list.
        row = await _row(message, form, limits.GET_BYTES_MAX - len(answer) - 2)
        if row is None:
            if not last_tag:
                raise too_large(
                    f"the first message does not fit in an answer of {limits.GET_BYTES_MAX} bytes: shorten the payload "
                    "with 'truncate', or get it over AMQP"
                )
            break
        if last_tag:
            answer += b","
        answer += row
        last_tag = _got(message).delivery_tag
    answer += b"]"
    return answer, last_tag


def _settlement(last_tag: int, requeue: bool | None) -> BasicAck | BasicNack:
    if requeue is None:
        return BasicAck(last_tag, multiple=True)
    return BasicNack(last_tag, multiple=True, requeue=requeue)


def _got(message: MethodReply) -> BasicGetOk:
    assert isinstance(message.method, BasicGetOk)
    return message.method


async def _row(message: MethodReply, form: FetchOptions, bytes_max: int) -> bytearray | None:
    """One message as JSON; None if it is larger. Other work runs between its slices."""
    body = memoryview(message.body)[: form.length_max]
    if len(message.header) + len(body) > bytes_max:
        return None
    payload = None if form.base64 else await _text(body)
    encoding = "base64" if payload is None else "string"
    if payload is None:
        payload = await _base64(body)
    if len(message.header) > limits.HEADER_BYTES_INLINE_MAX:
        row = await asyncio.to_thread(_facts, message, form.view, encoding)
    else:
        row = _facts(message, form.view, encoding)
    # The payload, which is encoded already, is the last member of the object.
    row.pop()
    row += b',"payload":"'
    row += payload
    row += b'"}'
    return row if len(row) <= bytes_max else None


def _facts(message: MethodReply, view: QueueView | None, encoding: str) -> bytearray:
    """Everything but the payload."""
    method, properties = _got(message), decode_header(message.header)[1]
    facts = {
        "payload_bytes": len(message.body),
        "redelivered": method.redelivered,
        "exchange": json_text(method.exchange),
        "routing_key": json_text(method.routing_key),
        "message_count": method.message_count,
        "properties": _shown_properties(properties),
        "payload_encoding": encoding,
        "level": _level(view, properties),
    }
    return bytearray(_ENCODER.encode(facts))


def _level(view: QueueView | None, properties: Properties) -> str | None:
    if view is None:
        return None
    return view.level if properties.delivery_mode == PERSISTENT else view.transient_level


def _shown_properties(properties: Properties) -> dict[str, Any]:
    return {
        name: json_table(value) if name == "headers" else json_text(value) if isinstance(value, str) else int(value)
        for name, value in msgspec.structs.asdict(properties).items()
        if value is not None
    }


async def _text(body: memoryview) -> bytearray | None:
    """The inside of a JSON string; None if the body is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    payload = bytearray()
    try:
        for start in range(0, len(body), limits.SLICE_BYTES):
            if start:
                await asyncio.sleep(0)
            payload += _ENCODER.encode(decoder.decode(body[start : start + limits.SLICE_BYTES]))[1:-1]
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return None
    return payload


async def _base64(body: memoryview) -> bytearray:
    payload = bytearray()
    for start in range(0, len(body), limits.SLICE_BYTES):
        if start:
            await asyncio.sleep(0)
        payload += b64encode(body[start : start + limits.SLICE_BYTES])
    return payload


def _integer(value: object) -> int:
    """ "5" counts as 5, as in RabbitMQ."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise bad_request(["not_integer", value])
    return value


def _refusal(fault: Fault) -> Refusal:
    """The same for a get, but missing and forbidden queues have their own codes."""
    refusal = of_fault(fault)
    refusal.reason = str(fault) if refusal.status == bad_request("").status else fault.reply_text
    return refusal
