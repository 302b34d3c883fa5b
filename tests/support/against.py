"""`pytest --against PLACE`: the tests of clients, unchanged, against a cluster of three primaries and a secondary.

PLACE selects the broker to which they connect: `root`, `backup`, `secondary`, or `random`, a different one for each
connection. Only tests that use the broker of their fixture can run in this way; all others are left out. Tests that
cannot pass there by design are named in `EXCEPTIONS` and `PROXIED_EXCEPTIONS`, with the reason, and shown as skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]

PLACES: Final = ("root", "backup", "secondary", "random")

ASKED: Final = (
    "spec/",
    "integration/test_aio_pika_confirms.py",
    "integration/test_aio_pika_robust.py",
    "integration/test_aio_pika_tutorials.py",
    "integration/test_amqp_client_js.py",
    "integration/test_amqplib.py",
    "integration/test_broken_clients.py",
    "integration/test_celery.py",
    "integration/test_connections.py",
    "integration/test_consumers.py",
    "integration/test_dead_letters.py",
    "integration/test_exchanges.py",
    "integration/test_kombu.py",
    "integration/test_pika_asyncio.py",
    "integration/test_pika_confirms.py",
    "integration/test_pika_content.py",
    "integration/test_pika_errors.py",
    "integration/test_pika_tutorials.py",
    "integration/test_queue_limits.py",
    "integration/test_streams.py",
)
"""Files of tests that use the broker of their fixture."""

TELLING: Final = (
    "spec/test_basic_ack.py",
    "spec/test_basic_consume.py",
    "spec/test_basic_get.py",
    "spec/test_basic_recover.py",
    "spec/test_confirm.py",
    "spec/test_consumer_priority.py",
    "spec/test_exchange_types.py",
    "spec/test_queue_declare.py",
    "spec/test_reply_to.py",
    "spec/test_single_active_consumer.py",
    "spec/test_streams.py",
    "spec/test_tx.py",
    "integration/test_amqp_client_js.py",
    "integration/test_pika_confirms.py",
    "integration/test_pika_tutorials.py",
)
"""The files that test most in little time, for `make test` (`--telling`)."""

OWN_BROKER: Final = "it has a broker of its own, which is told to behave otherwise"

READS_AT_ONCE: Final = (
    "one of several queues is chosen by the root, and what is for a private queue of another broker comes back from "
    "there; the test looks into it without waiting for a confirm"
)

EXCEPTIONS: Final = {
    "spec/test_connection_blocked.py": OWN_BROKER,
}
"""By the beginning of a test's name: the reason why it runs against no cluster."""

PROXIED_EXCEPTIONS: Final = {
    "spec/test_exchange_plugins.py::test_consistent_hash_of_a_header_or_property": READS_AT_ONCE,
    "spec/test_exchange_plugins.py::test_consistent_hash_moves_little": READS_AT_ONCE,
    "spec/test_exchange_plugins.py::test_consistent_hash_sends_one_key_to_one_queue": READS_AT_ONCE,
    "spec/test_exchange_plugins.py::test_consistent_hash_spreads_and_loses_nothing": READS_AT_ONCE,
    "spec/test_exchange_plugins.py::test_consistent_hash_weighs": READS_AT_ONCE,
    "spec/test_exchange_plugins.py::test_random_takes_one_queue_each_time": READS_AT_ONCE,
}
"""By the beginning of a test's name: the reason why it runs against a root only."""


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests that cannot or should not run against a cluster."""
    files = TELLING if config.getoption("--telling") else ASKED
    exceptions = EXCEPTIONS if config.getoption("--against") == "root" else EXCEPTIONS | PROXIED_EXCEPTIONS
    wanted: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        place = name_of(item)
        (wanted if place.startswith(files) else others).append(item)
        reason = next((reason for start, reason in exceptions.items() if place.startswith(start)), None)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"not asked of a cluster: {reason}"))
    config.hook.pytest_deselected(items=others)
    items[:] = wanted


def name_of(item: pytest.Item) -> str:
    """Returns the test's file, relative to the tests' directory, and its name."""
    return f"{item.path.relative_to(TESTS)}::{item.name}"
