"""One cluster for a whole run: three primaries and a secondary that all serve clients.

Tests that were written for one broker receive the address of one of these: always the root, a backup, the secondary, or
a different one for each connection. In the last case the name of the test determines the broker, so that a failure can
be repeated alone.
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
        """Later choices depend only on this name."""
        self._chance = Random(test)

    def choose(self) -> ClusterBroker:
        """Chooses a broker for one connection."""
        return self._chance.choice(self._chosen)

    def check(self) -> None:
        """Checks that all of them live, and that none has logged an exception since the last check."""
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
