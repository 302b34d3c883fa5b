"""Answers as bytes: JSON, compressed for those who can read that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from pandomq.admin import limits

if TYPE_CHECKING:
    from starlette.requests import Request

    from pandomq.admin.refusals import Refusal
    from pandomq.admin.table import Listing

_ENCODER: Final = msgspec.json.Encoder()
_NO_CACHE: Final = {"cache-control": "no-cache", "vary": "accept, accept-encoding, origin"}


class Encoded(Response):
    """Bytes that are JSON already."""

    media_type = "application/json"

    def __init__(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body, status, {**_NO_CACHE, **(headers or {})})


class Json(Encoded):
    def __init__(self, value: object, status: int = 200) -> None:
        super().__init__(_ENCODER.encode(value), status)


class Nothing(Response):
    """201 or 204: done, and there is nothing to say."""

    def __init__(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(b"", status, dict(headers or {}))


def created(*, new: bool) -> Nothing:
    return Nothing(201 if new else 204)


DELETED: Final = 204


def deleted() -> Nothing:
    return Nothing(DELETED)


def refused(refusal: Refusal) -> Response:
    body = _ENCODER.encode({"error": refusal.error, "reason": refusal.reason})
    return Encoded(body, refusal.status, refusal.headers)


async def listed(request: Request, listing: Listing) -> Encoded:
    """What many may have asked for: compressed once, if any of them wants it so."""
    if len(listing.body) >= limits.COMPRESSED_BYTES_MIN and _takes_gzip(request.headers.get("accept-encoding", "")):
        return Encoded(await listing.compressed(), headers={"content-encoding": "gzip"})
    return Encoded(listing.body)


def _takes_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        name, _, quality = part.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
