"""Answers as bytes: JSON, compressed for clients that support it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from pandomq.admin import limits

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Send

    from pandomq.admin.listings.table import Listing
    from pandomq.admin.refusals import Refusal

_ENCODER: Final = msgspec.json.Encoder()
_NO_CACHE: Final = {"cache-control": "no-cache", "vary": "accept, accept-encoding, origin"}


class Encoded(Response):
    """Bytes that are JSON already."""

    media_type = "application/json"

    def __init__(self, body: bytes | memoryview, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body, status, {**_NO_CACHE, **(headers or {})})


class Json(Encoded):
    def __init__(self, value: object, status: int = 200) -> None:
        super().__init__(_ENCODER.encode(value), status)


class Nothing(Response):
    """201 or 204: done, without content."""

    def __init__(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(b"", status, dict(headers or {}))


def created(*, new: bool) -> Nothing:
    return Nothing(201 if new else 204)


DELETED: Final = 204


def deleted() -> Nothing:
    return Nothing(DELETED)


def refused(refusal: Refusal) -> Response:
    body = _ENCODER.encode({"error": refusal.error, "reason": _shortened(refusal.reason)})
    return Encoded(body, refusal.status, refusal.headers)


def _shortened(reason: Any) -> Any:
    """A request may be large, and a reason may quote any part of it."""
    if isinstance(reason, list):
        return [_cut(item, limits.QUOTED_CHARS_MAX) for item in reason]
    return _cut(reason, limits.REASON_CHARS_MAX)


def _cut(value: Any, chars_max: int) -> Any:
    text = _ENCODER.encode(value).decode() if isinstance(value, dict | list) else value
    return f"{text[:chars_max]}…" if isinstance(text, str) and len(text) > chars_max else value


async def send_response(response: Response, send: Send) -> None:
    """Writes it in slices, each when the client has read most of those before it."""
    body = memoryview(response.body)
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    for start in range(0, max(1, len(body)), limits.SLICE_BYTES):
        end = start + limits.SLICE_BYTES
        await send({"type": "http.response.body", "body": bytes(body[start:end]), "more_body": end < len(body)})


async def listed(request: Request, listing: Listing) -> Encoded:
    """An answer that many clients may request: compressed once, if any of them accepts it."""
    if len(listing.body) >= limits.COMPRESSED_BYTES_MIN and _takes_gzip(request.headers.get("accept-encoding", "")):
        return Encoded(await listing.compressed(), headers={"content-encoding": "gzip"})
    return Encoded(listing.body)


def _takes_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        name, _, quality = part.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
