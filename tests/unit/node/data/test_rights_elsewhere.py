"""Rights on the data port of a broker that is not the root: it answers readers who may read, and changes nothing."""

from __future__ import annotations

import pytest

from pandomq import data_form
from pandomq.broker.administration.permissions import Right
from pandomq.broker.administration.rights import DATA, QUEUE
from pandomq.broker.log.commands import PutPermissions, PutUser
from pandomq.methods import QueueDeclare
from pandomq.node.output import Output
from tests.unit.node.cluster_world import ClusterWorld

from .data_port import Connection, DataPort
from .test_rights import ASKS

READS = ("range", "offset_at", "index", "read", "stored_offsets")
"""Any primary answers these; the others are the root's."""


class BackupPort(DataPort):
    """Of one node of a world of several, which all go on while somebody waits."""

    def __init__(self, world: ClusterWorld, name: str) -> None:
        self._world = world
        self.node = world.node(name)
        self.connections = []
        machine = world.machines[name]
        carry_out = machine._carry_out

        def with_data(output: Output) -> bool:
            for effect in output.data:
                self._carry_out(effect)
            return carry_out(output) or bool(output.data)

        machine._carry_out = with_data  # type: ignore[method-assign]

    @property
    def now_ms(self) -> int:  # type: ignore[override]
        return self._world.now_ms

    def step(self) -> None:
        self._world.run(5)


class Scene:
    """A cluster with a stream and a queue, and `ann` at a backup, who may do nothing."""

    def __init__(self) -> None:
        self.world = world = ClusterWorld(3)
        self.root = world.node(world.elect())
        world.run(500)
        local = self.root.local_clients.open(
            user="guest", vhost="/", on_answer=lambda answer: None, now_ms=world.now_ms
        )
        local.send(QueueDeclare("s", False, True, False, False, False, {"x-queue-type": "stream"}))
        local.send(QueueDeclare("q", False, True, False, False, False, {}))
        guest = self.root.broker.state.users["guest"]
        self.root.administer(PutUser("ann", guest.password_hash, guest.hashing, ()), lambda fault: None)
        self.grant()
        backup = next(name for name in world.machines if name != world.root)
        self.port = BackupPort(world, backup)
        self.ann: Connection = self.port.connect()
        assert self.ann.greet(user="ann")["role"] == "backup"

    def grant(self, right: Right | None = None, pattern: str = "^$") -> None:
        patterns = [pattern if one is right else "^$" for one in Right]
        heard: list[object] = []
        self.root.administer(PutPermissions("/", "ann", *patterns), heard.append)
        self.world.until(lambda: heard == [None])
        self.world.run(100)

    def ask(self, ask: str) -> int:
        """The code of the refusal; 0 if there is none."""
        return int(self.ann.ask({"ask": ask, **ASKS[ask]}).get("error", 0))

    def state(self) -> object:
        """Returns the state that requests could have changed, at the root."""
        state = self.root.broker.state
        stream = self.root.broker.streams.find("/", "s")
        assert stream is not None
        return list(state.leases.of_queue("/", "q")), state.staged.count_of("ann"), dict(stream.stored_offsets)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


@pytest.mark.proves("R38")
@pytest.mark.parametrize("ask", READS)
def test_a_backup_answers_readers_who_may_read(scene: Scene, ask: str) -> None:
    name = ASKS[ask]["stream"]
    (needed,) = DATA[ask].needs[QUEUE]
    for right in Right:
        scene.grant(right, f"^{name}$")
        assert scene.ask(ask) == (0 if right is needed else data_form.ACCESS_REFUSED), right
    scene.grant(needed, "^other$")
    assert scene.ask(ask) == data_form.ACCESS_REFUSED


def test_a_backup_lists_streams_for_users_that_may_read_them(scene: Scene) -> None:
    for right in Right:
        scene.grant(right, "^s$")
        streams = ["s"] if right in DATA["streams"].needs[QUEUE] else []
        assert scene.ann.ask({"ask": "streams", "pattern": ".*"}) == {"streams": streams}


@pytest.mark.proves("R38")
@pytest.mark.parametrize("ask", [ask for ask in ASKS if ask not in READS])
def test_requests_to_the_root_are_refused_by_a_backup_whatever_the_rights(scene: Scene, ask: str) -> None:
    before = scene.state()
    for right, pattern in ((None, ""), *((right, ".*") for right in Right)):
        scene.grant(right, pattern)
        assert scene.ask(ask) in (data_form.NOT_THE_ROOT, data_form.NOT_NOW, data_form.ACCESS_REFUSED)
        assert scene.state() == before
