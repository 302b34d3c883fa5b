"""Class tx: all of it or nothing."""

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World


def transacted(world: World | None = None) -> Peer:
    peer = (world or World()).peer()
    peer.declare("q", durable=True)
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    return peer


def counts(peer: Peer) -> tuple[int, int]:
    return peer.world.peer().counts("q")


def test_publishes_are_seen_after_the_commit() -> None:
    peer = transacted()
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    peer.publish("", "q", b"1").publish("", "q", b"2")
    assert counts(peer) == (0, 0)
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert counts(peer) == (2, 0)
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert counts(peer) == (2, 0)


def test_a_rollback_forgets_publishes_and_settlements() -> None:
    peer = transacted()
    peer.publish("", "q", b"1")
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    peer.get("q", no_ack=False)
    peer.publish("", "q", b"2").send(methods.BasicAck(1))
    peer.call(methods.TxRollback(), expect=methods.TxRollbackOk)
    assert counts(peer) == (0, 0)
    peer.send(methods.BasicNack(1, False, True))
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert counts(peer) == (1, 0)


def test_settlements_happen_with_the_commit() -> None:
    peer = transacted()
    for number in range(6):
        peer.publish("", "q", bytes([number]))
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    for _ in range(6):
        peer.get("q", no_ack=False)
    peer.send(methods.BasicAck(2, True), methods.BasicReject(4, True), methods.BasicNack(5, True, False))
    engine = peer.world.broker.engine
    assert engine.held_messages == 6
    close = peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert close == methods.TxCommitOk()
    assert counts(peer) == (1, 0)
    assert engine.held_messages == 2
    peer.send(methods.BasicAck(6))
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert engine.held_messages == 1


def test_a_tag_is_settled_once_even_before_the_commit() -> None:
    peer = transacted()
    peer.publish("", "q")
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    peer.get("q", no_ack=False)
    peer.send(methods.BasicAck(1), methods.BasicAck(0, True))
    assert peer.heard() == []
    close = peer.refused(methods.BasicAck(1))
    assert (close.reply_code, close.reply_text) == (406, "PRECONDITION_FAILED - unknown delivery tag 1")
    # Nothing was committed, so the message is back.
    assert counts(peer) == (1, 0)


def test_recover_leaves_the_messages_that_the_transaction_settled() -> None:
    peer = transacted()
    peer.publish("", "q", b"1").publish("", "q", b"2")
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    peer.send(methods.BasicAck(1))
    peer.call(methods.BasicRecover(True), expect=methods.BasicRecoverOk)
    assert counts(peer) == (1, 0)
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert peer.world.broker.engine.held_messages == 1


def test_mandatory_publishes_come_back_with_the_commit() -> None:
    peer = transacted()
    peer.publish("", "nobody", b"back", mandatory=True)
    assert peer.heard() == []
    peer.send(methods.TxCommit())
    returned, commit = peer.hear()
    assert isinstance(returned.method, methods.BasicReturn)
    assert isinstance(commit.method, methods.TxCommitOk)


def test_a_refused_publish_makes_the_commit_partial() -> None:
    peer = transacted()
    peer.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.publish("", "full").publish("", "q")
    close = peer.refused(methods.TxCommit())
    assert (close.reply_code, close.reply_text) == (406, "PRECONDITION_FAILED - partial tx completion")
    assert counts(peer) == (1, 0)


def test_faults_are_found_when_the_publish_comes() -> None:
    peer = transacted()
    peer.publish("missing", "q")
    assert peer.heard() == [methods.ChannelClose(404, "NOT_FOUND - no exchange 'missing' in vhost '/'", 60, 40)]


def test_a_queue_that_went_meanwhile_gets_nothing() -> None:
    peer = transacted()
    peer.publish("", "q")
    peer.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk)
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)


def test_modes_exclude_each_other() -> None:
    peer = World().peer()
    for method in (methods.TxCommit(), methods.TxRollback()):
        assert peer.refused(method).reply_text == "PRECONDITION_FAILED - channel is not transactional"
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    assert peer.refused(methods.TxSelect()).reply_text == (
        "PRECONDITION_FAILED - cannot switch from confirm to tx mode"
    )
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    assert peer.refused(methods.ConfirmSelect()).reply_text == (
        "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    )


def test_a_commit_is_one_entry_of_the_log() -> None:
    peer = transacted()
    peer.declare("r", durable=True)
    before = len(peer.world.entries)
    for name in ("q", "r", "q"):
        peer.publish("", name, b"kept", Properties(delivery_mode=2))
    assert len(peer.world.entries) == before
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert len(peer.world.entries) == before + 1


def test_transactions_are_bounded() -> None:
    peer = transacted(World(limits=BrokerLimits(transaction_bytes_max=1000)))
    for _ in range(3):
        peer.say_publish("", "q", b"x" * 400)
    peer.flush()
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    peer.reopen()
    assert counts(peer) == (0, 0)


PERSISTENT = Properties(delivery_mode=2)


def test_a_transaction_is_invisible_before_its_commit_in_the_log() -> None:
    world = World(late=True)
    peer = world.peer()
    peer.send(methods.QueueDeclare("q", durable=True))
    world.commit()
    peer.hear()
    consumer = world.peer()
    consumer.consume("q")
    world.commit()
    consumer.hear()
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    peer.publish("", "q", b"1", PERSISTENT).publish("", "q", b"2", PERSISTENT).send(methods.TxCommit())
    other = world.peer()
    other.publish("", "q", b"later", PERSISTENT)
    assert peer.heard() == []
    assert consumer.bodies() == [b"later"]
    world.commit()
    assert peer.heard() == [methods.TxCommitOk()]
    assert consumer.bodies() == [b"1", b"2"]


def test_a_queue_that_was_deleted_meanwhile_gets_nothing() -> None:
    world = World(late=True)
    peer = world.peer()
    peer.send(methods.QueueDeclare("q", durable=True))
    peer.send(methods.TxSelect())
    peer.publish("", "q", b"1", PERSISTENT).send(methods.TxCommit())
    world.peer().send(methods.QueueDelete("q"))
    world.commit()
    assert isinstance(peer.heard()[-1], methods.TxCommitOk)
    assert world.broker.engine.held_messages == 0
    assert not world.broker.admissions


def test_a_limit_counts_messages_that_wait_for_the_log() -> None:
    world = World(late=True)
    peer = world.peer()
    peer.send(methods.QueueDeclare("q", durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}))
    world.commit()
    peer.hear()
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    peer.publish("", "q", b"1", PERSISTENT).publish("", "q", b"2", PERSISTENT).send(methods.TxCommit())
    world.commit()
    assert isinstance(peer.heard()[-1], methods.ChannelClose)
    assert world.broker.engine.held_messages == 1


def late_world(*declares: methods.Method) -> tuple[World, Peer]:
    """A log that commits when told to, and a client in a transaction."""
    world = World(late=True)
    peer = world.peer()
    peer.send(*declares)
    world.commit()
    peer.hear()
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    return world, peer


def watching(world: World, queue: str) -> Peer:
    """A consumer."""
    consumer = world.peer()
    consumer.consume(queue)
    world.commit()
    consumer.hear()
    return consumer


def test_dead_letters_are_part_of_the_transaction() -> None:
    source = methods.QueueDeclare(
        "source", durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    )
    world, peer = late_world(source, methods.QueueDeclare("dead", durable=True), methods.QueueDeclare("q"))
    world.peer().publish("", "source", b"1", PERSISTENT).publish("", "source", b"2", PERSISTENT)
    world.commit()
    dead, done = watching(world, "dead"), watching(world, "q")
    for _ in range(2):
        peer.get("source", no_ack=False)
    peer.send(methods.BasicNack(2, True, False)).publish("", "q", b"done").send(methods.TxCommit())
    assert dead.bodies() == done.bodies() == []
    # A restart from a snapshot that is taken now finds them in their new queue alone.
    assert len(world.broker.admissions) == 1
    world.commit()
    assert peer.heard() == [methods.TxCommitOk()]
    assert done.bodies() == [b"done"]
    letters = dead.hear()
    assert [letter.body for letter in letters] == [b"1", b"2"]
    assert all(letter.properties is not None and letter.properties.headers for letter in letters)
    assert world.replayed().broker.engine.held_messages == 2


def test_delayed_messages_wait_for_the_commit_and_then_for_their_time() -> None:
    later = methods.ExchangeDeclare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"})
    world, peer = late_world(methods.QueueDeclare("q", durable=True), later, methods.QueueBind("q", "later", "q"))
    consumer = watching(world, "q")
    peer.publish("later", "q", b"short", Properties(delivery_mode=2, headers={"x-delay": 10}))
    peer.publish("later", "q", b"long", Properties(delivery_mode=2, headers={"x-delay": 1000})).send(methods.TxCommit())
    world.pass_time(100)
    assert consumer.bodies() == []
    world.commit()
    assert peer.heard() == [methods.TxCommitOk()]
    world.pass_time(1)
    assert consumer.bodies() == [b"short"]
    # The time began when the transaction was sent, as a replay would have it.
    world.pass_time(898)
    assert consumer.bodies() == []
    world.pass_time(1)
    assert consumer.bodies() == [b"long"]


def test_names_are_found_when_the_publish_comes_and_queues_with_the_commit() -> None:
    peer = transacted()
    peer.call(methods.QueueBind("q", "amq.direct", "k"), expect=methods.QueueBindOk)
    peer.publish("", "new", b"default").publish("", "q", b"again").publish("amq.direct", "k", b"bound")
    peer.publish("", "nothing", b"copied", Properties(headers={"CC": ["new", "new"]}), mandatory=True)
    peer.declare("new")
    peer.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk)
    peer.declare("q")
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    other = peer.world.peer()
    for queue, bodies in (("new", [b"default", b"copied"]), ("q", [b"again", b"bound"])):
        got = [other.get(queue) for _ in range(3)]
        assert [found.body for found in got if found is not None] == bodies
