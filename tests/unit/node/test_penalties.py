"""Penalties: they double, they end, they are forgiven, and the table is bounded."""

from pandomq.node.penalties import ADDRESSES_MAX, FIRST_WAIT_MS, FORGIVEN_AFTER_MS, WAIT_MS_MAX, Penalties


def test_waits_double_up_to_the_limit() -> None:
    penalties = Penalties()
    waits = [penalties.failed("192.0.2.1", 0) for _ in range(20)]
    assert waits[:3] == [FIRST_WAIT_MS, 2 * FIRST_WAIT_MS, 4 * FIRST_WAIT_MS]
    assert waits[-1] == WAIT_MS_MAX
    assert penalties.failed("192.0.2.2", 0) == FIRST_WAIT_MS, "each address for itself"


def test_forgiven_after_a_while_and_after_a_success() -> None:
    penalties = Penalties()
    penalties.failed("a", 0)
    assert penalties.failed("a", FORGIVEN_AFTER_MS - 1) == 2 * FIRST_WAIT_MS
    assert penalties.failed("a", 2 * FORGIVEN_AFTER_MS) == FIRST_WAIT_MS
    penalties.succeeded("a")
    assert penalties.failed("a", 2 * FORGIVEN_AFTER_MS) == FIRST_WAIT_MS


def test_the_table_is_bounded() -> None:
    penalties = Penalties()
    penalties.failed("first", 0)
    for number in range(ADDRESSES_MAX):
        penalties.failed(str(number), 1)
    assert penalties.failed("first", 2) == FIRST_WAIT_MS, "it had to go"
