"""Proves that both ends of a link have the cluster's key, without sending it.

A proof is an HMAC-SHA256 over the two hellos as they were sent. Each has a nonce that its sender drew for this one
connection, so a proof is valid for no other; it includes the side, so that it cannot be sent back to its sender. It
proves the identity of the other end, and nothing about later messages: where octets could be changed on the way, links
need TLS.
"""

import hashlib
import hmac
from enum import Enum


class Side(Enum):
    DIALING = b"pandomq link 1, dialing side"
    DIALED = b"pandomq link 1, dialed side"


def prove(key: bytes, side: Side, dialing_hello: bytes, dialed_hello: bytes) -> bytes:
    said = hmac.new(key, side.value, hashlib.sha256)
    for hello in (dialing_hello, dialed_hello):
        # With its length, so that no octet can move from one to the other.
        said.update(len(hello).to_bytes(4, "big") + hello)
    return said.digest()


def is_proven(proof: bytes, key: bytes, side: Side, dialing_hello: bytes, dialed_hello: bytes) -> bool:
    return hmac.compare_digest(proof, prove(key, side, dialing_hello, dialed_hello))
