"""The options of `pandomq bench` become a load."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from pandomq.bench import display
from pandomq.bench.load import Load
from pandomq.cli.bench import command as bench

LOCAL = "amqp://guest:guest@127.0.0.1:5672/"
THROUGHPUT = Load(url=LOCAL)
LATENCY = Load(
    url=LOCAL,
    rate=2000,
    size_bytes=1024,
    auto_ack=False,
    ack_every=1,
    prefetch=1000,
    confirm_window=1,
    duration_s=10.0,
    warm_up_s=2.0,
)
FANOUT = Load(
    url=LOCAL,
    size_bytes=100,
    consumers=200,
    queues=200,
    private_queues=True,
    exchange_type="fanout",
    backlog_max=1000,
)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Load]:
    """The loads that would be measured."""
    found: list[Load] = []

    def measure(load: Load, *_others: Any) -> None:
        found.append(load)

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(display, "throughput_table", lambda *_: "")
    monkeypatch.setattr(display, "latency_table", lambda *_: "")
    return found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("throughput", [THROUGHPUT]),
        ("latency", [LATENCY]),
        ("fanout", [FANOUT]),
        ("throughput -s 10 -s 20", [Load(url=LOCAL, size_bytes=10), Load(url=LOCAL, size_bytes=20)]),
        (
            "throughput -u amqp://a -p 2 -c 3 --queues 4 --acks --ack-every 5 --prefetch 6 --persistent --confirms 7",
            [
                Load(
                    url="amqp://a",
                    publishers=2,
                    consumers=3,
                    queues=4,
                    auto_ack=False,
                    ack_every=5,
                    prefetch=6,
                    persistent=True,
                    durable=True,
                    confirm_window=7,
                )
            ],
        ),
        (
            "throughput --backlog 1 --queue-type quorum -a x-max-length=5 -a x=true --exchange topic --bindings 9 -d 3",
            [
                Load(
                    url=LOCAL,
                    backlog_max=1,
                    queue_arguments={"x-queue-type": "quorum", "x-max-length": 5, "x": True},
                    durable=True,
                    exchange_type="topic",
                    bindings=9,
                    duration_s=3.0,
                )
            ],
        ),
        ("fanout -n 7 --warm-up 0.5", [msgspec.structs.replace(FANOUT, consumers=7, queues=7, warm_up_s=0.5)]),
        ("latency --no-confirms --auto-ack", [msgspec.structs.replace(LATENCY, confirm_window=0, auto_ack=True)]),
    ],
)
def test_options_become_a_load(loads: list[Load], words: str, expected: list[Load]) -> None:
    result = CliRunner().invoke(bench.bench_app, words.split())
    assert (result.exit_code, loads) == (0, expected), result.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("throughput --exchange x", "exchange type 'x' is unknown: expected one of direct, topic, fanout"),
        ("throughput --argument x", "'x' is not a queue argument: expected NAME=VALUE"),
        ("latency --size 1", "a rate-limited message carries its send time: use bodies of at least 8 bytes"),
    ],
)
def test_a_load_that_cannot_be_is_refused_in_one_line(loads: list[Load], words: str, reason: str) -> None:
    result = CliRunner().invoke(bench.bench_app, words.split())
    assert (result.exit_code, result.output.strip(), loads) == (1, f"pandomq bench: {reason}", [])


@pytest.mark.parametrize(
    "words",
    ["throughput --prefetch 65536", "throughput --publishers 0", "throughput --bindings -1", "latency --rate 0"],
)
def test_values_out_of_bounds_are_wrong_usage(loads: list[Load], words: str) -> None:
    result = CliRunner().invoke(bench.bench_app, words.split())
    assert (result.exit_code, loads) == (2, [])
