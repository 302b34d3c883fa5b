"""Which brokers have the fewest connections, and how they hear of each other."""

from __future__ import annotations

import pytest

from pandomq.cluster.load import ClientLoad, decode_load
from pandomq.node.peers.loads import TOLD_EVERY_MS, Loads, LoadTalk


@pytest.mark.proves("R14")
def test_the_least_loaded_brokers_come_first_and_missing_ones_last() -> None:
    loads = Loads()
    for name, connections in (("n1", 5), ("n2", 0), ("n4", 5)):
        loads.note(name, connections)
    assert loads.by_load(["n3", "n4", "n1", "n2"]) == ["n2", "n1", "n4", "n3"]
    loads.forget("n2")
    assert loads.by_load(["n3", "n4", "n1", "n2"]) == ["n1", "n4", "n2", "n3"]


def test_only_another_order_is_a_change() -> None:
    loads = Loads()
    loads.note("n1", 1)
    loads.note("n2", 5)
    loads.changed = False
    loads.note("n1", 4)
    assert not loads.changed
    loads.note("n1", 6)
    assert loads.changed
    loads.changed = False
    loads.forget("n3")
    assert not loads.changed
    loads.forget("n2")
    assert loads.changed


class Talk:
    def __init__(self) -> None:
        self.own = 0
        self.said: list[tuple[str, ClientLoad | None]] = []
        self.loads = Loads()
        self.talk = LoadTalk(
            "n1", self.loads, lambda: self.own, lambda name, data: self.said.append((name, decode_load(data)))
        )

    def tick(self, now_ms: int) -> list[tuple[str, ClientLoad | None]]:
        self.said.clear()
        self.talk.tick(now_ms)
        return self.said


def test_linked_brokers_receive_changed_loads_and_not_too_often() -> None:
    talk = Talk()
    talk.talk.connected("n2")
    assert talk.tick(1) == [("n2", ClientLoad(0))]
    talk.own = 3
    assert talk.tick(TOLD_EVERY_MS) == []
    assert talk.tick(TOLD_EVERY_MS + 1) == [("n2", ClientLoad(3))]
    talk.talk.connected("n3")
    assert talk.tick(3 * TOLD_EVERY_MS) == [("n3", ClientLoad(3))]
    assert talk.loads.of("n1") == 3
    talk.talk.disconnected("n2")
    talk.own = 4
    assert talk.tick(5 * TOLD_EVERY_MS) == [("n3", ClientLoad(4))]


def test_the_load_of_a_broker_that_is_not_linked_is_unknown() -> None:
    talk, other = Talk(), Talk()
    heard: list[bytes] = []
    speaker = LoadTalk("n2", other.loads, lambda: 7, lambda _, data: heard.append(data))
    speaker.connected("n1")
    speaker.tick(1)
    talk.talk.received("n2", heard[0])
    assert talk.loads.of("n2") is None, "it is not linked"
    talk.talk.connected("n2")
    talk.talk.received("n2", heard[0])
    assert talk.loads.of("n2") == 7
    talk.talk.disconnected("n2")
    assert talk.loads.of("n2") is None
