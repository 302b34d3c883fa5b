"""A login by the cluster's key, for what concerns the cluster.

A broker that was restarted and hears of no root does not know which of its log is committed, and so whom it may trust:
there may be no user who could tell it to go on alone. Whoever has the key could be a broker; so it may steer them. The
key is not sent: a request carries the time and an HMAC-SHA256 over that and all that is asked for. Where octets could
be read on the way, the same request could be sent once more within `SKEW_S_MAX`; that asks for nothing new.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

SCHEME: Final = "PandoMQ-Key"
SKEW_S_MAX: Final = 300
"""By which the clocks of the two sides may differ."""
_DOMAIN: Final = b"pandomq http 1"


def authorization(key: bytes, method: str, target: bytes, body: bytes, now_s: int) -> str:
    """The header that goes with a request."""
    return f"{SCHEME} {now_s}:{_seal(key, method, target, body, now_s).hex()}"


def is_by_key(header: str | None) -> bool:
    return header is not None and header.partition(" ")[0] == SCHEME


def refusal(header: str, key: bytes, method: str, target: bytes, body: bytes, now_s: int) -> str | None:
    """Why this is no login; None if it is one."""
    said_s, _, seal = header.partition(" ")[2].partition(":")
    if not key:
        return "this broker has no cluster key"
    if not (said_s.isascii() and said_s.isdigit() and len(said_s) < 16):
        return "the authorization header cannot be read"
    if not hmac.compare_digest(seal.encode(), _seal(key, method, target, body, int(said_s)).hex().encode()):
        return "it is not the key of this cluster"
    if abs(now_s - int(said_s)) > SKEW_S_MAX:
        return f"the clocks differ by more than {SKEW_S_MAX} s"
    return None


def _seal(key: bytes, method: str, target: bytes, body: bytes, now_s: int) -> bytes:
    said = hmac.new(key, _DOMAIN, hashlib.sha256)
    for part in (str(now_s).encode(), method.encode(), target, body):
        # With its length, so that no octet can move from one to the next.
        said.update(len(part).to_bytes(8, "big") + part)
    return said.digest()
