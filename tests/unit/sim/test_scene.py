"""Clients that were refused by a broker that knows no root."""

from random import Random
from typing import Any, cast

from pandomq.sim.agenda import Agenda
from pandomq.sim.scene import PATIENCE_MS, ROOT_PATIENCE_MS, Scene


class Refused:
    def __init__(self, agenda: Agenda) -> None:
        self.random = Random(1)
        self._agenda = agenda
        self.connects_ms: list[int] = []

    def connect(self) -> None:
        self.connects_ms.append(self._agenda.now_ms)


def scene_of(agenda: Agenda) -> Scene:
    nothing = cast(Any, None)
    return Scene(agenda, nothing, Random(1), nothing, nothing)


def test_a_refused_client_connects_again_though_no_broker_serves() -> None:
    agenda = Agenda()
    scene, client = scene_of(agenda), Refused(agenda)

    scene.await_root(cast(Any, client))
    agenda.run(ROOT_PATIENCE_MS)

    assert len(client.connects_ms) == 1


def test_a_refused_client_connects_once_soon_after_a_broker_serves() -> None:
    agenda = Agenda()
    scene, client = scene_of(agenda), Refused(agenda)
    client.random = cast(Any, type("Longest", (), {"randint": staticmethod(lambda _, most: most)}))

    scene.await_root(cast(Any, client))
    agenda.run(10)
    scene.root_serves()
    scene.root_serves()
    agenda.run(2 * ROOT_PATIENCE_MS)

    assert client.connects_ms == [10 + PATIENCE_MS]


def test_a_refused_client_rests_as_long_as_it_has_to() -> None:
    agenda = Agenda()
    scene, client = scene_of(agenda), Refused(agenda)

    scene.await_root(cast(Any, client), rest_ms=300)
    scene.root_serves()
    agenda.run(2 * ROOT_PATIENCE_MS)

    assert client.connects_ms == [300]
