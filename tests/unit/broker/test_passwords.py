"""Hashes of passwords: ours and RabbitMQ's, and what is refused as one."""

from base64 import b64encode
from hashlib import sha256, sha512

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq.broker.administration.passwords import (
    RABBITMQ_SHA256,
    RABBITMQ_SHA512,
    SCRYPT,
    hash_password,
    verify_password,
    what_is_wrong,
)
from pandomq.limits import PASSWORD_BYTES_MAX

SALT = b"sixteen bytes ok"
OURS = hash_password(b"secret", SALT)
A_SHA256 = "bMqcbmBvE5+R+DiLwm9xJZXS4T/Ri3PPENC3hQ8nl/umiGnq"
"""RabbitMQ 3.10's own, for the password below."""


def rabbitmq_hash(password: bytes, salt: bytes, *, sha: int = 256) -> str:
    digest = (sha256 if sha == 256 else sha512)(salt + password).digest()
    return b64encode(salt + digest).decode()


def test_a_password_hash_contains_its_parameters() -> None:
    name, cost, block, parallel, salt, key = OURS.split("$")
    assert (name, cost, block, parallel) == ("scrypt", "14", "8", "1")
    assert salt == b64encode(SALT).decode()
    assert len(key) == 44
    assert what_is_wrong(OURS, SCRYPT) is None


def test_only_the_password_fits() -> None:
    assert verify_password(b"secret", OURS, SCRYPT)
    for other in (b"Secret", b"secret ", b"", b"\0secret", b"x" * (PASSWORD_BYTES_MAX + 1)):
        assert not verify_password(other, OURS, SCRYPT)


def test_another_salt_gives_another_hash() -> None:
    assert hash_password(b"secret", b"another salt....") != OURS


@settings(max_examples=5)
@given(st.binary(min_size=1, max_size=40), st.binary(min_size=16, max_size=16))
def test_a_hashed_password_is_verified(password: bytes, salt: bytes) -> None:
    assert verify_password(password, hash_password(password, salt), SCRYPT)


@given(st.binary(min_size=1), st.binary(min_size=4, max_size=4), st.binary(min_size=1))
def test_the_forms_of_rabbitmq(password: bytes, salt: bytes, other: bytes) -> None:
    for hashing, size in ((RABBITMQ_SHA256, 256), (RABBITMQ_SHA512, 512)):
        stored = rabbitmq_hash(password, salt, sha=size)
        assert what_is_wrong(stored, hashing) is None
        assert verify_password(password, stored, hashing)
        assert verify_password(other, stored, hashing) is (other == password)


def test_no_password_fits_no_hash() -> None:
    for hashing in (SCRYPT, RABBITMQ_SHA256, RABBITMQ_SHA512):
        assert what_is_wrong("", hashing) is None
        assert not verify_password(b"", "", hashing)
        assert not verify_password(b"x", "", hashing)


def test_an_empty_password_never_fits() -> None:
    assert not verify_password(b"", rabbitmq_hash(b"", b"salt"), RABBITMQ_SHA256)


@pytest.mark.parametrize(
    ("stored", "hashing"),
    [
        (A_SHA256, "rabbit_password_hashing_md5"),
        (A_SHA256, ""),
        (A_SHA256, RABBITMQ_SHA512),
        (A_SHA256, SCRYPT),
        (OURS, RABBITMQ_SHA256),
        ("!!!!", RABBITMQ_SHA256),
        ("ä", RABBITMQ_SHA256),
        (A_SHA256[:-4], RABBITMQ_SHA256),
        ("scrypt$14$8$1$YQ==", SCRYPT),
        ("scrypt$14$8$1$YQ==$YQ==", SCRYPT),
        ("bcrypt" + OURS[6:], SCRYPT),
        ("scrypt$99" + OURS[9:], SCRYPT),  # would take forever and all memory
        ("scrypt$14$8$1000" + OURS[13:], SCRYPT),
        ("scrypt$-1" + OURS[9:], SCRYPT),
        ("scrypt$x" + OURS[9:], SCRYPT),
        ("$" * 100, SCRYPT),
    ],
)
def test_malformed_hashes_are_refused(stored: str, hashing: str) -> None:
    assert what_is_wrong(stored, hashing) is not None


def test_a_hash_that_rabbitmq_made() -> None:
    assert what_is_wrong(A_SHA256, RABBITMQ_SHA256) is None
    assert verify_password(b"rabbit", A_SHA256, RABBITMQ_SHA256)
