"""Checksums of entries, and the chain over them by which replicas compare their logs.

An entry's checksum covers its payload, index and term, so it is the same on every broker at any place in a file. The
chain is a polynomial over the checksums modulo a Mersenne prime: logs that differ in one entry always differ in it, and
the value of any range follows from the values at its two ends, also when the bodies are deleted.
"""

import struct
from typing import Final

from pandomq.kernel import crc32

CHAIN_START: Final = 1
CHAIN_PRIME: Final = 2**61 - 1
CHAIN_BASE: Final = 0x1D3F7A5C9B2E4681

IDENTITY: Final = struct.Struct("<QQI")


def entry_checksum(index: int, term: int, payload: bytes | memoryview) -> int:
    # The payload comes first: its part does not depend on the place of the entry in the log.
    return crc32(IDENTITY.pack(index, term, len(payload)), crc32(payload))


def chain_next(chain: int, checksum: int) -> int:
    return (chain * CHAIN_BASE + checksum + 1) % CHAIN_PRIME


def chain_of_range(chain_before: int, chain_after: int, count: int) -> int:
    """The part of the chain that `count` entries add, independent of the entries before them."""
    return (chain_after - chain_before * pow(CHAIN_BASE, count, CHAIN_PRIME)) % CHAIN_PRIME


assert CHAIN_BASE < CHAIN_PRIME
