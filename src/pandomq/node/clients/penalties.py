"""Determines how long a refused login waits for its answer, and records which logins have failed before.

Failures are counted for each user and for each network: an IPv4 address, or the /64 of an IPv6 address, within which a
client may choose any. The larger count decides: the first failure costs little, and each further one doubles the wait,
up to a limit. A count ends after a minute without a failure. A good login ends none of these counts. It only clears the
failures of the same user from the same network: these decide which logins are checked first, and not how long refusals
wait. The tables are bounded: when one is full, the entry that failed longest ago goes.
"""

from __future__ import annotations

from collections.abc import Hashable
from ipaddress import IPv6Address, ip_address
from typing import Final

FIRST_WAIT_MS: Final = 250
WAIT_MS_MAX: Final = 2_000
FORGIVEN_AFTER_MS: Final = 60_000
ENTRIES_MAX: Final = 10_000
"""The limit of each table."""

assert FIRST_WAIT_MS <= WAIT_MS_MAX < FORGIVEN_AFTER_MS


def network_of(address: str) -> str:
    """An IPv4 address itself, the /64 of an IPv6 address; any other text stands for itself."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"


class Penalties:
    __slots__ = ("_of_network", "_of_pair", "_of_user")

    def __init__(self) -> None:
        self._of_user = _Failures()
        self._of_network = _Failures()
        self._of_pair = _Failures()

    def failed(self, user: str, network: str, now_ms: int) -> int:
        """Counts a failure; returns for how many milliseconds its refusal waits."""
        self._of_pair.add((user, network), now_ms)
        count = max(self._of_user.add(user, now_ms), self._of_network.add(network, now_ms))
        return min(FIRST_WAIT_MS << min(count - 1, 16), WAIT_MS_MAX)

    def has_failed(self, user: str, network: str, now_ms: int) -> bool:
        """A recent failure, with no good login of that user from there since."""
        return self._of_pair.has((user, network), now_ms)

    def is_guessed(self, user: str, now_ms: int) -> bool:
        """A login as this user has failed lately, from any network."""
        return self._of_user.has(user, now_ms)

    def succeeded(self, user: str, network: str) -> None:
        self._of_pair.forget((user, network))

    def __bool__(self) -> bool:
        """Whether anything has failed at all."""
        return bool(self._of_pair)


class _Failures:
    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[int, int]] = {}
        """The number of failures, and the time of the last one; in the order of the last."""

    def add(self, key: Hashable, now_ms: int) -> int:
        """Counts one more, and returns the count."""
        count, last_ms = self._entries.pop(key, (0, now_ms))
        if now_ms - last_ms >= FORGIVEN_AFTER_MS:
            count = 0
        if len(self._entries) >= ENTRIES_MAX:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = (count + 1, now_ms)
        return count + 1

    def has(self, key: Hashable, now_ms: int) -> bool:
        found = self._entries.get(key)
        return found is not None and now_ms - found[1] < FORGIVEN_AFTER_MS

    def forget(self, key: Hashable) -> None:
        self._entries.pop(key, None)

    def __bool__(self) -> bool:
        return bool(self._entries)
