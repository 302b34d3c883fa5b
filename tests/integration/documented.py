"""Which blocks of the documents are run by which tests, and which cannot be run, with the reason.

README has a test of its own (test_readme.py).

A place is a page, a heading, and the number of the block under that heading.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.markdown import Block, blocks_of

from .test_documented_operations import RUN as OPERATIONS

DOCS: Final = Path(__file__).parents[2] / "docs"
README: Final = DOCS.parent / "README.md"
Place = tuple[str, str, int]

OUTPUT: Final = "output"
DRAWING: Final = "a drawing"
INSTALLS: Final = "tests/packaging installs the package"
SPARK: Final = "a fragment for Spark with `…` in it; tests/spark has whole queries with these options"

NOT_RUN: Final[dict[Place, str]] = {
    ("ARCHITECTURE", "Packages", 1): DRAWING,
    ("ARCHITECTURE", "The life of a publish", 1): DRAWING,
    ("data-port", "The protocol", 1): "a message's form",
    ("demo", "The demo", 1): OUTPUT,
    ("operations", "Move from RabbitMQ", 1): "exports from a RabbitMQ",
    ("operations", "Connect clients", 2): "the configuration of HAProxy; cluster/test_processes.py has a balancer",
    ("operations", "Connect clients", 3): OUTPUT,
    (
        "operations",
        "Add a broker",
        2,
    ): "addresses of other machines; test_documented_operations.py starts it on this one",
    ("operations", "Choose access", 1): OUTPUT,
    ("operations", "Replace a broker", 1): OUTPUT,
    ("pipelines", "Pipelines", 1): INSTALLS,
    ("replication", "Roles", 1): DRAWING,
    ("replication", "Roles", 2): DRAWING,
    ("replication", "The life of an entry", 1): DRAWING,
    ("replication", "Links", 1): DRAWING,
    ("spark", "Spark", 1): INSTALLS,
    ("spark", "Queues", 1): SPARK,
    ("spark", "Writing", 1): SPARK,
    ("spark", "Exactly once", 1): SPARK,
    ("spark", "Clusters, --py-files and Spark Connect", 2): SPARK,
}

RUN_ELSEWHERE: Final[dict[Place, str]] = {
    **{("operations", *key): "test_documented_operations.py" for key in OPERATIONS},
    **{
        ("clients", client, 1): "test_documented_clients.py"
        for client in ("pika", "aio-pika", "kombu", "Celery", "amqplib")
    },
    ("deduplication", "Deduplication", 1): "test_documented_clients.py",
    **{
        ("failover", client, 1): "cluster/test_documented_failover.py"
        for client in ("pika", "aio-pika", "kombu", "Celery", "amqplib", "amqp-client.js")
    },
    ("pipelines", "A declarative pipeline", 1): "tests/spark/pipeline/test_declarative.py",
    **{("spark", "Tutorial", number): "tests/spark/test_source_brokers.py" for number in range(1, 5)},
    ("spark", "Clusters, --py-files and Spark Connect", 1): "tests/spark/test_elsewhere.py",
}

COMMANDS: Final[set[Place]] = {
    ("cli", "Selecting a broker", 1),
    ("cli", "Passwords", 1),
    ("cli", "rabbitmqctl commands", 1),
    ("http-api", "The HTTP API", 1),
    ("security", "A lost administrator", 1),
    ("tracing", "Traces", 1),
}
"""Run against a broker, one after the other."""

CLUSTER_UP: Final[Place] = ("cli", "A cluster on one machine", 1)

PARSED: Final[set[Place]] = {
    ("CONTRIBUTING", "Build", 1),
    ("CONTRIBUTING", "Test", 1),
    ("benchmarks", "How to run the benchmarks", 1),
    ("pipelines", "archive: streams to a lake", 1),
    ("pipelines", "replay: from the lake to an exchange", 1),
    ("pipelines", "rollup: rates and latencies from the trace stream", 1),
    ("pipelines", "simulate: the simulator on a cluster", 1),
    ("pipelines", "audit: violated guarantees", 1),
    ("reliability", "Reliability", 1),
}
"""Take hours, or need Spark: their options and arguments are checked, and that the Makefile has their targets, and the
repository their paths."""

PYTHON: Final[set[Place]] = {
    ("data-port", "The client", 1),
    ("failover", "aio-pika", 2),
    ("pipelines", "Ledgers", 1),
    ("streams", "Streams", 1),
    ("streams", "Archived streams", 1),
    ("tracing", "The stream", 1),
}
"""Run by test_documented_python.py, the fragments among them with what they lack."""

TLS: Final[set[Place]] = {("security", "TLS", 1), ("security", "TLS", 2)}
"""Run by test_documented_python.py: a client's certificate, and a login with it."""


def documented() -> dict[Place, Block]:
    pages = [page for folder in (DOCS, DOCS / "adr", DOCS.parent) for page in sorted(folder.glob("*.md"))]
    return {(page.stem, *block.key): block for page in pages if page != README for block in blocks_of(page)}


def block_at(place: Place) -> Block:
    return documented()[place]
