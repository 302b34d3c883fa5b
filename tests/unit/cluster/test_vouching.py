"""The data that a root receives about a client of another broker."""

from __future__ import annotations

from pandomq.cluster.hello import Hello
from pandomq.cluster.vouching import identity_of, vouch

HELLO = Hello(oldest=1, newest=1, name="n2", nonce=bytes(32), life="0123456789abcdef" * 2)


def identity(client: int, hello: Hello = HELLO) -> int:
    return identity_of(vouch(hello, purpose="tunnel", user="u", peer="p", properties=b"", client=client))


def test_connections_have_distinct_and_ascending_identities() -> None:
    assert identity(0) == 0
    assert 0 < identity(1) < identity(2) < 2**63
    elsewhere = Hello(oldest=1, newest=1, name="n3", nonce=bytes(32), life="fedcba9876543210" * 2)
    assert abs(identity(1, elsewhere) - identity(1)) > 2**32
