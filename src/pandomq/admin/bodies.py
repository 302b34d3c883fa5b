"""Bodies of requests: their limits, and how they are read and decoded.

A body is read after its sender was identified. Most endpoints accept only small ones, which are decoded at once. Large
ones, for definitions and messages, are decoded in parts (`decode_fields`, `split`), because a decoder blocks the loop:
a body of twenty megabytes would block the broker for seconds.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeVar

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from pandomq.admin import limits
from pandomq.admin.refusals import Refusal, bad_request, too_large
from pandomq.admin.request_room import Share

S = TypeVar("S", bound=msgspec.Struct)

_WRONG_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Empty(msgspec.Struct, gc=False):
    """Any object; nothing of it is kept."""


def announces_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def check_content_type(headers: Headers) -> None:
    """Raises Refusal (415) for a body that is not declared as JSON: a form of a web page could send it."""
    if not announces_body(headers):
        return
    given = headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        reason = f"a request body needs the header content-type: application/json, not '{given}'"
        raise Refusal(415, "unsupported_media_type", reason, _closing(headers))


def _closing(headers: Headers) -> dict[str, str]:
    """The rest of a large body is not read: the connection ends with the answer."""
    announced = headers.get("content-length", "")
    is_small = announced.isdigit() and int(announced) <= limits.SMALL_BODY_BYTES_MAX
    return {} if is_small else {"connection": "close"}


async def read_octets(request: Request, bytes_max: int, share: Share) -> bytes:
    """Reads the body, which takes room of the request's share. Raises Refusal."""
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > bytes_max:
        raise _oversized(bytes_max)
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.BODY_S_MAX):
            async for piece in request.stream():
                if size + len(piece) > bytes_max:
                    raise _oversized(bytes_max)
                share.take(len(piece))
                size += len(piece)
                pieces.append(piece)
    except TimeoutError:
        late = f"the request body did not arrive completely within {limits.BODY_S_MAX:g} s: send the request again"
        raise Refusal(408, "bad_request", late, {"connection": "close"}) from None
    except ClientDisconnect:
        raise Refusal(400, "bad_request", "the request body did not arrive completely") from None
    return b"".join(pieces)


def _oversized(bytes_max: int) -> Refusal:
    refusal = too_large(f"Exceeded HTTP request body size limit of {bytes_max} bytes")
    refusal.headers = {"connection": "close"}
    return refusal


def decode_object(octets: bytes) -> dict[str, Any]:
    """A small JSON object; an empty body is an empty object. Raises Refusal."""
    if not octets.strip():
        return {}
    body = decode_value(octets)
    if not isinstance(body, dict):
        raise bad_request("not_json")
    return body


def decode_value(octets: bytes | msgspec.Raw) -> Any:
    """Raises Refusal for invalid JSON, or if it is nested deeper than any valid request."""
    try:
        value = msgspec.json.decode(octets)
    except _WRONG_JSON:
        raise bad_request("not_json") from None
    if _is_deep(value):
        raise bad_request(f"the body is nested deeper than {limits.NESTING_MAX} levels")
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(limits.NESTING_MAX + 1):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += one.values()
            elif isinstance(one, list):
                below += one
        if not below:
            return False
        level = [one for one in below if isinstance(one, dict | list)]
    return bool(level)


# Large bodies.


async def decode_fields(octets: bytes, fields: type[S]) -> S:
    """The fields of a large object, each undecoded; unknown ones are ignored. Raises Refusal."""
    if octets.count(b"{") + octets.count(b"[") > limits.BODY_STRUCTURES_MAX:
        raise bad_request(
            f"the body has more than {limits.BODY_STRUCTURES_MAX} objects and lists: divide it into several requests"
        )
    await asyncio.sleep(0)
    try:
        return msgspec.json.decode(octets.strip() or b"{}", type=fields)
    except _WRONG_JSON:
        raise bad_request("not_json") from None


async def split(name: str, written: msgspec.Raw) -> list[msgspec.Raw]:
    """The objects in a list, each undecoded. Other work runs between its passes over the list. Raises Refusal."""
    try:
        # The first pass keeps nothing: numbers in place of the objects would take far more memory than their text.
        msgspec.json.decode(written, type=list[_Empty])
        await asyncio.sleep(0)
        return msgspec.json.decode(written, type=list[msgspec.Raw])
    except msgspec.ValidationError:
        raise bad_request(f"{name}: expected a list of objects") from None
    except _WRONG_JSON:
        raise bad_request("not_json") from None
