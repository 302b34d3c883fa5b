"""A login by a key, for requests about the cluster and its users.

A restarted broker without a root does not know how much of its log is committed, and so which users exist: there may be
no user who could make it continue alone. Also, the last administrator may have been deleted. A holder of the cluster's
key could be a broker, and a reader of a broker's directory has all its data; so both may manage the cluster and change
its users. The key is not sent: a request contains the time, the SHA-256 of its body, and an HMAC-SHA256 over both, the
method and the target. So the proof is checked before the body is read. An eavesdropper could send the same request once
more within `SKEW_S_MAX`; it would request nothing new.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final, NamedTuple

SCHEME: Final = "PandoMQ-Key"
SKEW_S_MAX: Final = 300
"""Maximum difference between the clocks of the two sides."""
_VERSION: Final = "2"
_DOMAIN: Final = b"pandomq http 2"
_FIELDS: Final = 4


class Proof(NamedTuple):
    """The contents of the header."""

    said_s: int
    digest: str
    seal: str


def authorization(key: bytes, method: str, target: bytes, body: bytes, now_s: int) -> str:
    """The header for a request."""
    digest = hashlib.sha256(body).hexdigest()
    return f"{SCHEME} {_VERSION}:{now_s}:{digest}:{_seal(key, method, target, digest, now_s).hex()}"


def is_by_key(header: str | None) -> bool:
    return header is not None and header.partition(" ")[0] == SCHEME


def read_proof(header: str) -> Proof | str:
    """The contents of the header, or the reason why it cannot be parsed."""
    fields = header.partition(" ")[2].split(":")
    if len(fields) == 2:
        return "the login with a key has an older format: use the commands of the broker's version"
    if len(fields) != _FIELDS or fields[0] != _VERSION or not _is_number(fields[1]):
        return "the authorization header is malformed"
    return Proof(int(fields[1]), fields[2], fields[3])


def refusal(proof: Proof, keys: Sequence[bytes], method: str, target: bytes, now_s: int) -> str | None:
    """The reason why this is no login by one of these keys; None if it is one. The caller must still compare the body
    with the digest."""
    usable = [key for key in keys if key]
    if not usable:
        return "this broker has no key"
    seals = [_seal(key, method, target, proof.digest, proof.said_s).hex().encode() for key in usable]
    if not any(hmac.compare_digest(proof.seal.encode(), seal) for seal in seals):
        return "the key is neither that of this cluster nor that of this broker"
    if abs(now_s - proof.said_s) > SKEW_S_MAX:
        return f"the clocks differ by more than {SKEW_S_MAX} s: synchronize them"
    return None


def fits_digest(body: bytes, digest: str) -> bool:
    return hmac.compare_digest(hashlib.sha256(body).hexdigest().encode(), digest.encode())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _seal(key: bytes, method: str, target: bytes, digest: str, now_s: int) -> bytes:
    said = hmac.new(key, _DOMAIN, hashlib.sha256)
    for part in (str(now_s).encode(), method.encode(), target, digest.encode()):
        # With its length, so that no octet can move from one field to the next.
        said.update(len(part).to_bytes(8, "big") + part)
    return said.digest()
