"""Credentials: known only after they were remembered, and only whole."""

from pandomq.node.clients.credentials import CREDENTIALS_MAX, CredentialCache


def test_credentials_are_known_only_as_a_whole() -> None:
    known = CredentialCache(b"key")
    known.remember("ann", "hash", b"secret")
    assert known.knows("ann", "hash", b"secret")
    assert not known.knows("ann", "hash", b"Secret")
    assert not known.knows("ann", "changed", b"secret")
    assert not known.knows("bob", "hash", b"secret")
    assert not known.knows("annh", "ash", b"secret"), "parts do not run into each other"


def test_bounded_and_the_oldest_goes_first() -> None:
    known = CredentialCache(b"key")
    for number in range(CREDENTIALS_MAX + 1):
        known.remember(f"user{number}", "hash", b"secret")
    assert not known.knows("user0", "hash", b"secret")
    assert known.knows("user1", "hash", b"secret")
    assert known.knows(f"user{CREDENTIALS_MAX}", "hash", b"secret")
