"""Penalties: they double, they end, they are counted by user and by network, and the tables are bounded."""

import pytest

from pandomq.node.clients.penalties import (
    ENTRIES_MAX,
    FIRST_WAIT_MS,
    FORGIVEN_AFTER_MS,
    WAIT_MS_MAX,
    Penalties,
    network_of,
)


def test_waits_double_up_to_the_limit() -> None:
    penalties = Penalties()
    waits = [penalties.failed("ann", "192.0.2.1", 0) for _ in range(20)]
    assert waits[:3] == [FIRST_WAIT_MS, 2 * FIRST_WAIT_MS, 4 * FIRST_WAIT_MS]
    assert waits[-1] == WAIT_MS_MAX
    assert penalties.failed("bob", "192.0.2.2", 0) == FIRST_WAIT_MS, "each network and each user for itself"


def test_failures_count_for_the_user_from_all_networks_and_for_the_network_with_all_users() -> None:
    penalties = Penalties()
    for number in range(8):
        penalties.failed("ann", f"192.0.2.{number}", 0)
        penalties.failed(f"user{number}", "198.51.100.1", 0)
    assert penalties.failed("ann", "203.0.113.1", 0) == WAIT_MS_MAX
    assert penalties.failed("bob", "198.51.100.1", 0) == WAIT_MS_MAX


def test_forgiven_after_a_while() -> None:
    penalties = Penalties()
    penalties.failed("ann", "a", 0)
    assert penalties.failed("ann", "a", FORGIVEN_AFTER_MS - 1) == 2 * FIRST_WAIT_MS
    assert penalties.failed("ann", "a", 2 * FORGIVEN_AFTER_MS) == FIRST_WAIT_MS


def test_a_good_login_resets_no_count() -> None:
    """Otherwise a guesser with a user of its own would log in as that one after each guess."""
    penalties = Penalties()
    for _ in range(8):
        penalties.failed("ann", "a", 0)
        penalties.succeeded("guesser", "a")
        penalties.succeeded("ann", "elsewhere")
    assert penalties.failed("ann", "b", 0) == WAIT_MS_MAX
    assert penalties.failed("bob", "a", 0) == WAIT_MS_MAX
    assert penalties.has_failed("ann", "a", 0)
    penalties.succeeded("ann", "a")
    assert not penalties.has_failed("ann", "a", 0)
    assert penalties.failed("bob", "a", 0) == WAIT_MS_MAX


def test_the_tables_are_bounded() -> None:
    penalties = Penalties()
    penalties.failed("first", "first", 0)
    for number in range(ENTRIES_MAX):
        penalties.failed(str(number), str(number), 1)
    assert penalties.failed("first", "first", 2) == FIRST_WAIT_MS, "it had to go"


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_networks(address: str, network: str) -> None:
    assert network_of(address) == network
