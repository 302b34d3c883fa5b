"""One cluster for a whole run: three primaries and a secondary that serve clients wherever they come.

Tests that were written for one broker are given the address of one of these: always the root, a backup, the secondary,
or another one for each connection. Which one, then, follows from the name of the test, so that it fails again alone.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.support.against import PLACES

from .cluster import Cluster
from .process import ClusterBroker
from .secondaries import Secondary

LOGIN = {"default_user": "guest", "default_password": "guest"}


class ClusterUnderTest:
    def __init__(self, directory: Path, place: str) -> None:
        assert place in PLACES
        self.place = place
        self._cluster = Cluster(directory, sections={"cluster": {"access": "proxy"}, "auth": LOGIN})
        self._secondary = Secondary(self._cluster, "s1")
        self._secondary.configure({"auth": LOGIN})
        self._chance = Random(0)
        self._checked: dict[str, int] = {}
        self._chosen: list[ClusterBroker] = []

    @property
    def brokers(self) -> list[ClusterBroker]:
        return [*self._cluster, self._secondary]

    def start(self) -> None:
        self._cluster.start()
        self._secondary.launch()
        self._secondary.wait_until_in_step()
        root = self._cluster.root
        match self.place:
            case "root":
                self._chosen = [root]
            case "backup":
                self._chosen = [next(broker for broker in self._cluster if broker is not root)]
            case "secondary":
                self._chosen = [self._secondary]
            case _:
                self._chosen = self.brokers

    def begin(self, test: str) -> None:
        """What is chosen from now on depends on nothing but this."""
        self._chance = Random(test)

    def choose(self) -> ClusterBroker:
        """For one connection."""
        return self._chance.choice(self._chosen)

    def check(self) -> None:
        """All of them live, and none has logged an exception since the last time."""
        for broker in self.brokers:
            assert broker.alive, f"{broker.name} ended by itself:\n{broker.tail}"
            mark = self._checked.get(broker.name, 0)
            self._checked[broker.name] = broker.mark()
            broker.check(mark)

    def log_text(self) -> str:
        return "\n".join(broker.words for broker in self.brokers)

    def end(self) -> None:
        for broker in self.brokers:
            broker.end()
