"""A message is (queue, sequence, term): whatever a crash loses, no two messages are ever the same by that."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.methods import BasicPublish, QueueDeclare
from pandomq.properties import Properties, encode_header
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss
from pandomq.wire.codec import encode_content
from tests.unit.node.lives import Life, Publisher

Identity = tuple[int, int, int]


class Register:
    """Every message that was ever seen in a queue, by its identity."""

    def __init__(self) -> None:
        self.bodies: dict[Identity, bytes] = {}

    def look(self, life: Life) -> None:
        kernel = life.broker.state.vhosts["/"].queues["q"].kernel
        rows = kernel.snapshot()
        sequences = [row[0] for row in rows]
        assert sequences == sorted(set(sequences)), "what is alive is in order by the sequence alone"
        for sequence, term, *_, message in rows:
            assert self.bodies.setdefault((kernel.queue_id, sequence, term), message.body) == message.body

    def count_reissued(self) -> int:
        pairs = [(queue, sequence) for queue, sequence, _ in self.bodies]
        return len(pairs) - len(set(pairs))


def publish(publisher: Publisher, body: bytes, *, persistent: bool) -> None:
    header = encode_header(len(body), Properties(delivery_mode=2 if persistent else 1))
    octets = encode_content(1, BasicPublish("", "q"), header, body, 4096)
    publisher.life.node._input_router.gather(publisher.client, list(publisher._scanner.feed(octets)))


def live(disk: SimDisk, now_ms: int, register: Register, random: Random) -> int:
    """One life of the broker, ended by a crash; transient messages take numbers that the log does not know."""
    life = Life(disk, now_ms)
    publisher = Publisher(life)
    publisher.say(QueueDeclare("q", durable=True))
    life.until(lambda: "q" in life.broker.state.vhosts["/"].queues and not len(life.broker.held))
    register.look(life)
    for _ in range(random.randrange(40)):
        publish(publisher, random.randbytes(8), persistent=random.random() < 0.4)
        if random.random() < 0.5:
            life.turn()
            register.look(life)
    for _ in range(random.randrange(6)):
        life.turn()
        register.look(life)
    disk.crash(random.choice(list(Loss)))
    return life.now_ms


@pytest.mark.parametrize("seed", range(6))
def test_no_identity_is_given_twice(seed: int) -> None:
    random = Random(seed)
    disk, register, now_ms = SimDisk(random), Register(), 1_700_000_000_000
    for _ in range(8):
        now_ms = live(disk, now_ms, register, random)
    # The case that the term is there for did come up: the same number, given in several lives.
    assert register.count_reissued() > 0
