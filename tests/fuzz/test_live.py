"""A few thousand hostile inputs to running brokers beside bystanders; `make fuzz` has the million."""

from __future__ import annotations

from random import Random

import pytest

from pandomq import methods
from pandomq.methods import Method
from pandomq.node.data.handlers import HANDLERS
from tests.fuzz.live import amqp, data_port, http
from tests.fuzz.live.attack import ADMINISTRATOR, MALLORY
from tests.fuzz.live.scene import fuzz_cluster, fuzz_one_broker
from tests.support.methods import LAYOUTS

SEED = 20_261_118


@pytest.mark.timeout(120)
@pytest.mark.proves("R38")
def test_a_hostile_client_of_every_surface_harms_no_bystander() -> None:
    wanted = {"amqp": 2_500, "data": 1_000, "http": 150}
    found = fuzz_one_broker(SEED, wanted)
    assert all(found["handled"][surface] >= count for surface, count in wanted.items())
    assert found["bystanders"]["confirmed"] > 0


SHORT = {"amqp": 600, "data": 250, "http": 40}
LONG = {"amqp": 4_000, "data": 1_500, "http": 200}


@pytest.mark.timeout(300)
@pytest.mark.proves("R38")
@pytest.mark.parametrize(
    "wanted", [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long", marks=pytest.mark.slow)]
)
def test_a_hostile_client_of_a_backup_and_a_secondary_harms_no_bystander(wanted: dict[str, int]) -> None:
    found = fuzz_cluster(SEED, wanted)
    assert all(found["handled"][surface] >= count for surface, count in wanted.items())
    assert found["bystanders"]["confirmed"] > 0


def test_every_method_request_and_endpoint_is_drawn() -> None:
    known = {one.amqp_name for one in vars(methods).values() if isinstance(one, type) and issubclass(one, Method)}
    assert known - {""} <= set(LAYOUTS)
    assert {*amqp.FATAL, *amqp.FATAL_TOO, *amqp.HARMLESS} == set(LAYOUTS)
    asked = b"".join(data_port.batch(Random(number), MALLORY).data for number in range(50))
    assert all(f'"ask": "{name}"'.encode() in asked for name in HANDLERS)
    requested = b"".join(http.batch(Random(number), ADMINISTRATOR, MALLORY).data for number in range(400))
    for template in http.ROUTES:
        assert template.partition("{")[0].encode() in requested


def test_a_batch_follows_from_its_random_numbers() -> None:
    for make in (lambda random: amqp.batch(random, MALLORY), lambda random: data_port.batch(random, MALLORY)):
        assert make(Random(7)) == make(Random(7)) != make(Random(8))
    assert http.batch(Random(7), ADMINISTRATOR, MALLORY) == http.batch(Random(7), ADMINISTRATOR, MALLORY)
