"""Publishes a message over HTTP. For people and tests, not for traffic."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from pandomq.admin import limits
from pandomq.admin.bodies import decode_fields, decode_value
from pandomq.admin.field_json import amqp_table
from pandomq.admin.listings.exchange_rows import exchange_of
from pandomq.admin.names import short
from pandomq.admin.refusals import bad_request, missing_key, too_large, unavailable
from pandomq.admin.responses import Json
from pandomq.errors import ChannelFault
from pandomq.methods import BasicPublish
from pandomq.properties import Properties, encode_header

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall

_INTEGERS: Final = {"delivery_mode": 255, "priority": 255, "timestamp": 2**64 - 1}


class Publish(msgspec.Struct):
    """The fields of a request to publish, each undecoded: the payload may be large."""

    properties: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    routing_key: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    payload_encoding: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


async def publish(call: HttpCall) -> Json:
    said = await decode_fields(call.octets, Publish)
    for name in Publish.__struct_fields__:
        if getattr(said, name) is msgspec.UNSET:
            raise missing_key(name)
    given, routing_key, encoding = (_part(said, name) for name in ("properties", "routing_key", "payload_encoding"))
    try:
        payload = msgspec.json.decode(cast(msgspec.Raw, said.payload), type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise bad_request("payload_not_string") from None
    if not isinstance(routing_key, str):
        raise bad_request("routing_key is not a string")
    body = _decoded(payload, encoding)
    header = encode_header(len(body), _properties(given))
    exchange = short("exchange", exchange_of(call.path["exchange"]))
    method = BasicPublish(exchange, short("routing_key", routing_key), mandatory=True)
    if call.views.alarms():
        raise unavailable("publishing is blocked: low on memory")
    try:
        async with call.client(call.path["vhost"]) as client:
            return Json({"routed": await client.publish(method, header, body)})
    except ChannelFault as fault:
        # For any fault, RabbitMQ reports a bad request, and names the code.
        raise bad_request(str(fault)) from None


def _part(said: Publish, name: str) -> Any:
    """Raises Refusal."""
    written = getattr(said, name)
    if len(bytes(written)) > limits.SMALL_BODY_BYTES_MAX:
        raise too_large(f"{name} is longer than {limits.SMALL_BODY_BYTES_MAX} bytes")
    return decode_value(written)


def _decoded(payload: str, encoding: object) -> bytes:
    if encoding == "string":
        return payload.encode()
    if encoding != "base64":
        raise bad_request(["unsupported_encoding", encoding])
    try:
        return b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(["not_base64", payload]) from None


def _properties(given: Any) -> Properties:
    """Unknown properties are ignored, as in RabbitMQ."""
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
