"""Loads, names, batches and ratios: what is decided before and after the sockets."""

from typing import Any

import msgspec
import pytest

from pandomq.bench.client import wire
from pandomq.bench.client.batch import Batch, encode_batch
from pandomq.bench.client.url import parse_url
from pandomq.bench.load import Load, Measurement
from pandomq.bench.measurements import features
from pandomq.bench.measurements.flatness import bindings_load
from pandomq.bench.run import Show
from pandomq.bench.topology import Topology


def measured(load: Load, rate: float) -> Measurement:
    return Measurement(load=load, server="Fake 1", seconds=1.0, published_rate=rate, delivered_rate=rate)


def test_a_url_is_taken_apart() -> None:
    url = parse_url("amqp://us%40er:p%2Fw@example.org:1234/my%2Fhost")
    assert url == ("example.org", 1234, "us@er", "p/w", "my/host")
    assert "p/w" not in url.without_password
    assert parse_url("amqp://localhost") == ("localhost", 5672, "guest", "guest", "/")
    with pytest.raises(ValueError, match="give an amqp"):
        parse_url("amqps://localhost")


@pytest.mark.parametrize(
    "wrong",
    [
        {"auto_ack": False, "prefetch": 10, "ack_every": 11},
        {"rate": 10, "size_bytes": 7},
        {"exchange_type": "headers"},
        {"private_queues": True, "queues": 2, "consumers": 1},
        {"publishers": 0},
        {"duration_s": 0},
    ],
)
def test_loads_that_could_not_run_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Load(url="", **wrong)


def test_messages_of_a_batch_are_equally_long_and_go_through_keys_priorities_and_headers() -> None:
    load = Load(url="", priorities=3, header_keys=5, expiration_ms=1000)
    batch = encode_batch(load, "x", ["k0", "k1"], 1, 131072)
    assert len(batch.data) == len(batch.messages) * batch.message_bytes
    assert len(set(batch.messages)) == 2 * 3 * 5
    with pytest.raises(ValueError, match="equally long"):
        Batch([b"a", b"bb"])


@pytest.mark.parametrize("exchange_type", ["direct", "topic"])
def test_published_keys_are_equally_long_and_all_bound(exchange_type: str) -> None:
    topology = Topology(bindings_load(Load(url=""), exchange_type, 100_000))
    keys = topology.publish_keys
    assert len({len(key) for key in keys}) == 1
    assert 1000 < len(keys) <= 4096
    numbers = [int("".join(filter(str.isdigit, key))) for key in keys]
    for key, number in zip(keys, numbers, strict=True):
        literal = topology.binding_key(number).strip("*#")
        assert literal in key


def test_every_case_is_compared_with_a_case_that_runs_before_it() -> None:
    seen: set[str] = set()
    for case in features.CASES:
        assert case.name not in seen
        assert case.baseline == case.name or case.baseline in seen
        seen.add(case.name)
        msgspec.structs.replace(Load(url=""), **case.changes)


def test_costs_are_medians_of_ratios_within_a_round() -> None:
    plain_rates = iter([1000.0, 100.0, 500.0])

    def put(load: Load, show: Show, pid: int | None) -> Measurement:
        show("measure", 0.5, 1.0)
        if "x-message-ttl" in load.queue_arguments:
            return measured(load, 250.0)
        if load.queue_arguments.get("x-queue-type") == "quorum":
            raise wire.BrokerRefused("540 NOT_IMPLEMENTED")
        return measured(load, next(plain_rates) if load == base else 100.0)

    base = Load(url="")
    result = features.measure_features(base, rounds=3, put=put)
    costs = {cost.name: cost for cost in result.costs}
    assert costs["x-message-ttl"].cost_ratio == 2.0
    assert costs["plain"].cost_ratio == 1.0
    assert not costs["plain"].targeted
    assert costs["quorum, x-delivery-limit"].error == "540 NOT_IMPLEMENTED"
