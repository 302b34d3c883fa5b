"""Credentials that were verified a moment ago.

A password's hash is slow on purpose, and two thousand connections a second cannot each wait for it. So a password that
was verified once is recognised by a keyed digest of user, hash and password: the key is drawn at the start and never
leaves the process, and the password itself is not kept. A changed password changes the hash, and so the digest.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

CREDENTIALS_MAX: Final = 10_000
"""Remembered digests; the oldest is dropped first."""


class CredentialCache:
    __slots__ = ("_digests", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._digests: dict[bytes, None] = {}

    def knows(self, user: str, password_hash: str, password: bytes) -> bool:
        return self._digest(user, password_hash, password) in self._digests

    def remember(self, user: str, password_hash: str, password: bytes) -> None:
        if len(self._digests) >= CREDENTIALS_MAX:
            del self._digests[next(iter(self._digests))]
        self._digests[self._digest(user, password_hash, password)] = None

    def _digest(self, user: str, password_hash: str, password: bytes) -> bytes:
        digest = blake2b(key=self._key, digest_size=32)
        for part in (user.encode("utf-8", "surrogateescape"), password_hash.encode(), password):
            digest.update(len(part).to_bytes(4, "big"))
            digest.update(part)
        return digest.digest()
