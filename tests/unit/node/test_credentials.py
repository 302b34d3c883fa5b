"""Credentials: known only after they were remembered, and only whole."""

from pandomq.node.credentials import CREDENTIALS_MAX, Credentials


def test_each_part_counts() -> None:
    known = Credentials(b"key")
    known.remember("ann", "hash", b"secret")
    assert known.knows("ann", "hash", b"secret")
    assert not known.knows("ann", "hash", b"Secret")
    assert not known.knows("ann", "changed", b"secret")
    assert not known.knows("bob", "hash", b"secret")
    assert not known.knows("annh", "ash", b"secret"), "parts do not run into each other"


def test_bounded_and_the_oldest_goes_first() -> None:
    known = Credentials(b"key")
    for number in range(CREDENTIALS_MAX + 1):
        known.remember(f"user{number}", "hash", b"secret")
    assert not known.knows("user0", "hash", b"secret")
    assert known.knows("user1", "hash", b"secret")
    assert known.knows(f"user{CREDENTIALS_MAX}", "hash", b"secret")
