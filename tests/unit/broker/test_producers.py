"""What other brokers send again on behalf of their clients has its effect once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pandomq import limits, methods
from pandomq.broker.producers import ProducerTable
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.test_snapshot import revived

PERSISTENT = Properties(delivery_mode=2)
PRODUCER = 2**62 + 7


def tunnel(world: World, count: int = 0, *, producer: int = PRODUCER, origin: str = "n2") -> tuple[Peer, int]:
    """A client of another broker, and up to which number its producer is known."""
    peer = world.connect(origin=origin)
    answer = peer.call(methods.ChannelOpen(f"{producer}:{count}"), expect=methods.ChannelOpenOk)
    return peer, int(answer.channel_id)


def known(world: World, *, producer: int = PRODUCER) -> int:
    peer, number = tunnel(world, producer=producer)
    peer.leave()
    return number


def test_the_table_forgets_the_oldest_and_the_silent() -> None:
    table = ProducerTable()
    for producer in range(limits.PRODUCERS_REMEMBERED_MAX + 1):
        table.note(producer, 1, 0)
    assert len(table) == limits.PRODUCERS_REMEMBERED_MAX
    assert (table.last_number(0), table.last_number(1)) == (0, 1)
    table.note(1, 5, 1)
    table.note(-1, 1, 2)
    assert (table.last_number(1), table.last_number(2)) == (5, 0)
    table.note(7, 1, limits.PRODUCER_REMEMBERED_MS + 1)
    assert [row[0] for row in table.rows()] == [1, -1, 7]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(0, 2)), max_size=30))
def test_a_table_made_of_its_rows_is_the_same(notes: list[tuple[int, int, int]]) -> None:
    table, now_ms = ProducerTable(), 0
    for producer, number, hours in notes:
        now_ms += hours * limits.PRODUCER_REMEMBERED_MS // 2
        table.note(producer, number, now_ms)
    other = ProducerTable()
    for row in table.rows():
        other.note(*row)
    assert other.rows() == table.rows()


def test_commits_are_numbered_and_whoever_has_the_log_knows_the_last() -> None:
    world = World()
    world.peer().declare("q", durable=True)
    peer, number = tunnel(world)
    assert number == 0
    peer.send(methods.TxSelect())
    for _ in range(2):
        peer.publish("", "q", b"m", PERSISTENT).send(methods.TxCommit())
    peer.publish("", "q", b"m", PERSISTENT).send(methods.TxRollback())
    peer.leave()
    for other in (world, world.replayed(), revived(world)):
        assert known(other) == 2
        assert known(other, producer=1) == 0
    peer, _ = tunnel(world, 2)
    peer.send(methods.TxSelect(), methods.TxCommit())
    peer.leave()
    assert known(world) == 3


def test_the_answer_waits_for_the_log() -> None:
    world = World()
    peer, _ = tunnel(world)
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    world.late = True
    peer.send(methods.TxCommit())
    peer.leave()
    again = world.connect(origin="n2")
    assert again.send(methods.ChannelOpen(f"{PRODUCER}:1")).heard() == []
    world.commit()
    assert again.heard() == [methods.ChannelOpenOk(b"1")]


def test_a_newer_connection_ends_the_older_one() -> None:
    world = World()
    world.peer().declare("q")
    old, _ = tunnel(world)
    old.send(methods.TxSelect()).publish("", "q")
    new, number = tunnel(world)
    assert number == 0
    assert old.fault().reply_code == 320
    old.send(methods.TxCommit())
    assert world.peer().counts("q")[0] == 0
    old.leave()
    new.send(methods.TxSelect(), methods.TxCommit())
    assert known(world) == 1


def test_what_names_no_producer() -> None:
    world = World()
    for said in ("x", "1", "0:1", ":", "1:-1", f"{2**64}:0", "1:2:3"):
        peer = world.connect(origin="n2")
        peer.send(methods.ChannelOpen(said))
        assert peer.fault().reply_code == 502, said
    # To others the string means nothing.
    world.connect().call(methods.ChannelOpen("x"), expect=methods.ChannelOpenOk)
    twice, _ = tunnel(world)
    twice.send(methods.ChannelOpen(f"{PRODUCER}:0"), channel=2)
    assert twice.fault().reply_code == 502


def test_notes_of_producers_are_no_matter_of_configuration() -> None:
    world = World()
    heard: list[bytes] = []
    world.broker.on_command = heard.append
    world.broker.held.applied_everywhere(0)
    peer, _ = tunnel(world)
    peer.send(methods.TxSelect(), methods.TxCommit())
    assert len(peer.heard()) == 2
    assert heard == []
    assert len(world.replayed().broker.state.producers) == 1
