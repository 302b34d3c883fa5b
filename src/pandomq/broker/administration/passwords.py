"""Hashes of passwords: how they are made, and whether a password matches one.

Ours are scrypt with a salt, in a string that names the cost with which it was made, so that the cost can rise while
older hashes stay valid. RabbitMQ's (base64 of a salt of four bytes and one SHA-256 or SHA-512) are accepted so that its
users can be imported; they are quick to guess, and a password that is set anew gets ours. The salt is an argument:
chance is injected.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from hashlib import scrypt, sha256, sha512
from hmac import compare_digest
from typing import Any, Final

from pandomq.limits import PASSWORD_BYTES_MAX

SCRYPT: Final = "scrypt"
RABBITMQ_SHA256: Final = "rabbit_password_hashing_sha256"
RABBITMQ_SHA512: Final = "rabbit_password_hashing_sha512"
HASHINGS: Final = (SCRYPT, RABBITMQ_SHA256, RABBITMQ_SHA512)

SALT_BYTES: Final = 16
LOG_COST: Final = 14
_BLOCK: Final = 8
_PARALLEL: Final = 1
"""16 MiB and some 50 ms of one core for each guess."""
_LOG_COST_MAX: Final = 17
_BLOCK_MAX: Final = 16
_PARALLEL_MAX: Final = 4
_MEMORY_BYTES_MAX: Final = 2 * 128 * _BLOCK_MAX * 2**_LOG_COST_MAX
_HASH_BYTES: Final = 32

_RABBITMQ_SALT_BYTES: Final = 4
_DIGESTS: Final[dict[str, tuple[Callable[[bytes], Any], int]]] = {
    RABBITMQ_SHA256: (sha256, 32),
    RABBITMQ_SHA512: (sha512, 64),
}


def hash_password(password: bytes, salt: bytes, log_cost: int = LOG_COST) -> str:
    """The slow hash: `scrypt$14$8$1$SALT$HASH`. Takes some 50 ms."""
    key = _derive(password, salt, log_cost, _BLOCK, _PARALLEL)
    return f"{SCRYPT}${log_cost}${_BLOCK}${_PARALLEL}${_text(salt)}${_text(key)}"


def is_possible(password: bytes) -> bool:
    """Whether any hash may be one of this password."""
    return 0 < len(password) <= PASSWORD_BYTES_MAX


def verify_password(password: bytes, password_hash: str, hashing: str) -> bool:
    """Whether the password belongs to the hash. This takes as long as the hash does. An empty password and an empty
    hash match nothing."""
    if not is_possible(password) or not password_hash:
        return False
    if hashing == SCRYPT:
        log_cost, block, parallel, salt, key = _read_scrypt(password_hash)
        return compare_digest(key, _derive(password, salt, log_cost, block, parallel))
    digest, _ = _DIGESTS[hashing]
    stored = b64decode(password_hash)
    salt = stored[:_RABBITMQ_SALT_BYTES]
    return compare_digest(stored[_RABBITMQ_SALT_BYTES:], digest(salt + password).digest())


def work_of(password_hash: str, hashing: str = SCRYPT) -> int:
    """How slow a hash is, in scrypt's blocks; 0 for RabbitMQ's, and for a hash that nothing matches."""
    if hashing != SCRYPT or not password_hash:
        return 0
    log_cost, block, parallel, *_ = _read_scrypt(password_hash)
    return parallel * block << log_cost


def spend(work: int) -> None:
    """Takes as long as hashes of so much work together."""
    while work >= 2 * _BLOCK:
        log_cost = min((work // _BLOCK).bit_length() - 1, LOG_COST)
        _derive(b"-", b"-", log_cost, _BLOCK, 1)
        work -= _BLOCK << log_cost


def what_is_wrong(password_hash: str, hashing: str) -> str | None:
    """The error in a hash from outside; None if it can be verified against, or is empty (no password matches)."""
    if hashing not in HASHINGS:
        return f"unknown hashing algorithm '{hashing}': expected one of {', '.join(HASHINGS)}"
    if not password_hash:
        return None
    try:
        if hashing == SCRYPT:
            _read_scrypt(password_hash)
        elif len(b64decode(password_hash, validate=True)) != _RABBITMQ_SALT_BYTES + _DIGESTS[hashing][1]:
            return f"password_hash has the wrong length for {hashing}"
    except (NotBase64, ValueError):
        return f"password_hash is not a valid {hashing} hash"
    return None


def _read_scrypt(text: str) -> tuple[int, int, int, bytes, bytes]:
    """Raises ValueError for a text that `hash_password` would not write, or that would take too long to verify."""
    name, log_cost, block, parallel, salt, key = text.split("$")
    costs = int(log_cost), int(block), int(parallel)
    within = zip(costs, (_LOG_COST_MAX, _BLOCK_MAX, _PARALLEL_MAX), strict=True)
    if name != SCRYPT or not all(1 <= cost <= cost_max for cost, cost_max in within):
        raise ValueError(text)
    decoded = b64decode(key, validate=True)
    if len(decoded) != _HASH_BYTES:
        raise ValueError(text)
    return *costs, b64decode(salt, validate=True), decoded


def _derive(password: bytes, salt: bytes, log_cost: int, block: int, parallel: int) -> bytes:
    return scrypt(password, salt=salt, n=2**log_cost, r=block, p=parallel, maxmem=_MEMORY_BYTES_MAX, dklen=_HASH_BYTES)


def _text(octets: bytes) -> str:
    return b64encode(octets).decode("ascii")
