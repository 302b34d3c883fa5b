"""A reader in worlds of a stream that forgets by age: what the reader waits for may be gone before it comes."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

from pandomq.methods import BasicDeliver, QueueDeclareOk
from pandomq.properties import Properties, encode_header
from pandomq.sim.agenda import Agenda
from pandomq.sim.checkers.root_time import Moment
from pandomq.sim.clients.ageing import LOOK_MS, OFFSET, AgeingReader, AgeingStage
from pandomq.sim.features.ageing import AGEING
from pandomq.sim.ledger import SentMessage, WorldLedger


class Publisher:
    def __init__(self) -> None:
        self.stage = AgeingStage.DONE
        self.content = True
        self.old: list[SentMessage] = []
        self.refills = 0

    def refill(self) -> None:
        self.refills += 1


class Course:
    """The stream had messages up to offset 12 when the reader began, and drops them before the reader gets any."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.stream = SimpleNamespace(committed_end=13, first_offset=10)
        streams = SimpleNamespace(find=lambda vhost, name: self.stream)
        machine = SimpleNamespace(serving=True, node=SimpleNamespace(broker=SimpleNamespace(streams=streams)))
        ledger = WorldLedger()
        ledger.messages[b"1:1"] = SentMessage(1, 1, (AGEING.name,), True, 0, None, 1, 0)
        scene = SimpleNamespace(
            agenda=self.agenda,
            ledger=ledger,
            machines=[machine],
            random_of=Random,
            trace=SimpleNamespace(detailed=False, detail=lambda *_: None),
        )
        time = SimpleNamespace(now=lambda cable: Moment(1, 100_000), undisturbed_ms=lambda life: 0)
        self.publisher = Publisher()
        reader: Any = AgeingReader(scene, "reader", AGEING, self.publisher, time)  # type: ignore[arg-type]
        reader.cable = SimpleNamespace(send=lambda data: None)
        self.reader = reader
        self.reader.method(QueueDeclareOk(AGEING.name, 3, 0), b"")
        self.stream.first_offset = 13

    def deliver(self, offset: int) -> None:
        self.reader.header = encode_header(3, Properties(headers={OFFSET: offset}))
        self.reader.method(BasicDeliver(AGEING.name, 1, False, "", AGEING.name), b"1:1")


def test_a_reader_is_content_with_a_later_message_if_the_last_one_was_too_old() -> None:
    course = Course()
    course.deliver(13)
    assert course.reader.content


def test_a_publisher_writes_again_for_a_reader_whose_messages_are_all_too_old() -> None:
    course = Course()
    course.agenda.run(LOOK_MS + 1)
    assert course.publisher.refills == 1
    assert not course.reader.content
    course.deliver(13)
    course.agenda.run(10 * LOOK_MS)
    assert course.publisher.refills == 1
    assert course.reader.content
