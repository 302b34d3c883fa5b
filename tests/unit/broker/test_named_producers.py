"""The memory of numbered publishes, compared with sets of numbers that are never forgotten."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pandomq import limits
from pandomq.broker.log.commands import NoteSequences, SequenceNotes, decode_command, encode_command
from pandomq.broker.publishing.named_producers import NamedProducer, NamedProducers, SequenceVerdict, add_range

NUMBERS = st.integers(0, 40)
CONNECTIONS = st.integers(1, 2 * limits.PRODUCER_CONNECTIONS_FENCED_MAX)
FATES = st.sampled_from(["accepted", "accepted", "accepted", "refused", "in part"])


@given(st.lists(st.tuples(NUMBERS, st.integers(0, 3)), max_size=30))
def test_ranges_are_sets(added: list[tuple[int, int]]) -> None:
    ranges: list[int] = []
    numbers: set[int] = set()
    for first, more in added:
        add_range(ranges, first, first + more)
        numbers.update(range(first, first + more + 1))
    pairs = list(zip(ranges[::2], ranges[1::2], strict=True))
    assert [number for first, last in pairs for number in range(first, last + 1)] == sorted(numbers)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(pairs))


@given(st.lists(st.lists(st.tuples(NUMBERS, FATES), max_size=6), max_size=12))
def test_numbers_have_their_effect_once_on_the_root_and_where_the_notes_are_applied(
    batches: list[list[tuple[int, str]]],
) -> None:
    root, others = NamedProducers(), NamedProducers()
    producer = root.make("/", "ann", "p")
    producer.take_over(7)
    taken: set[int] = set()
    in_part: set[int] = set()
    refused: set[int] = set()
    for now_ms, batch in enumerate(batches):
        for number, fate in batch:
            verdict = producer.judge(number)
            if number in in_part:
                assert verdict is SequenceVerdict.IN_PART
            elif number in taken:
                assert verdict is SequenceVerdict.REPEATED
            elif number > max(taken, default=-1) or number in refused:
                assert verdict is SequenceVerdict.NEW
                refused.discard(number)
                if fate == "refused":
                    producer.refuse(number, in_part=False)
                    refused.add(number)
                    continue
                taken.add(number)
                if fate == "in part":
                    producer.refuse(number, in_part=True)
                    in_part.add(number)
                else:
                    producer.accept(number)
            else:
                assert verdict is SequenceVerdict.NEVER_SEEN
        command = NoteSequences(now_ms, producer.take_notes())
        root.settle(producer, now_ms)
        decoded = decode_command(encode_command(command))
        assert decoded == command
        others.apply(command)
        assert others.rows() == root.rows()
        assert_counted(root, others)
    again = NamedProducers()
    for row, user in zip(root.rows(), root.users(), strict=True):
        again.reinstate(row, user)
    assert (again.rows(), again.users()) == (root.rows(), root.users())
    assert_counted(root, again)
    root.forget("/", "ann", "p")
    assert root.size_bytes == root.bytes_of("ann") == 0


def assert_counted(*tables: NamedProducers) -> None:
    """The size is the sum over the producers, and the same on every broker."""
    for table in tables:
        assert table.size_bytes == table.bytes_of("ann") == sum(producer.size_bytes for producer in table)
        assert table.size_bytes == tables[0].size_bytes > 0


@given(st.lists(st.lists(CONNECTIONS, min_size=1, max_size=40), max_size=4))
def test_all_that_took_over_in_a_batch_are_fenced_where_the_notes_are_applied(batches: list[list[int]]) -> None:
    root, others = NamedProducers(), NamedProducers()
    producer = root.make("/", "ann", "p")
    for now_ms, batch in enumerate(batches):
        for connection in batch:
            if connection != producer.owner and connection not in producer.fenced:
                producer.claim(connection)
        notes = producer.take_notes()
        root.settle(producer, now_ms)
        others.apply(NoteSequences(now_ms, notes))
        assert others.rows() == root.rows()


def test_gaps_take_memory() -> None:
    table = NamedProducers()
    numbers = range(0, 2 * limits.PRODUCER_RANGES_MAX, 2)
    noted(table, "p", [bound for number in numbers for bound in (number, number)])
    assert 40_000 < table.size_bytes < 50_000


def noted(table: NamedProducers, name: str, accepted: list[int], now_ms: int = 0, owner: int = 1) -> NamedProducer:
    table.apply(NoteSequences(now_ms, [SequenceNotes("/", name, owner, accepted, [], [], "ann")]))
    producer = table.find("/", "ann", name)
    assert producer is not None
    return producer


def test_of_many_gaps_the_newest_are_remembered() -> None:
    table = NamedProducers()
    numbers = list(range(0, 4 * limits.PRODUCER_RANGES_MAX, 2))
    producer = noted(table, "p", [bound for number in numbers for bound in (number, number)])
    assert len(producer.accepted) == 2 * limits.PRODUCER_RANGES_MAX
    oldest = producer.accepted[0]
    assert producer.judge(oldest) is SequenceVerdict.REPEATED
    assert producer.judge(oldest + 1) is SequenceVerdict.NEVER_SEEN
    assert producer.judge(oldest - 1) is producer.judge(0) is SequenceVerdict.FORGOTTEN
    assert producer.judge(numbers[-1] + 1) is SequenceVerdict.NEW


def test_of_many_refused_the_newest_may_come_again() -> None:
    table = NamedProducers()
    again = list(range(limits.PRODUCER_ODD_MAX + 2))
    table.apply(NoteSequences(0, [SequenceNotes("/", "p", 1, [5000, 5000], again, [])]))
    producer = table.first()
    assert len(producer.odd) == limits.PRODUCER_ODD_MAX
    assert [producer.judge(number) for number in (0, 1, 2)] == [
        SequenceVerdict.FORGOTTEN,
        SequenceVerdict.FORGOTTEN,
        SequenceVerdict.NEW,
    ]
    assert producer.judge(5000) is SequenceVerdict.REPEATED


def test_earlier_owners_of_a_name_are_remembered_up_to_a_limit() -> None:
    table = NamedProducers()
    for owner in range(1, limits.PRODUCER_CONNECTIONS_FENCED_MAX + 3):
        producer = noted(table, "p", [], owner=owner)
    assert producer.owner == limits.PRODUCER_CONNECTIONS_FENCED_MAX + 2
    assert producer.fenced == list(range(2, producer.owner))


def test_the_producer_that_was_silent_for_the_longest_comes_first() -> None:
    table = NamedProducers()
    for now_ms, name in enumerate(("a", "b", "c", "a")):
        noted(table, name, [now_ms, now_ms], now_ms)
    assert [producer.name for producer in table] == ["b", "c", "a"]
    forgotten = table.first()
    table.apply(NoteSequences(9, [], [], [("/", "ann", "b")]))
    assert forgotten.forgotten
    assert table.find("/", "ann", "b") is None
    assert (table.first_of("ann").name, table.count_of("ann"), table.count_of("bob")) == ("c", 2, 0)
    table.forget_vhost("/")
    assert len(table) == 0
    assert table.count_of("ann") == 0
