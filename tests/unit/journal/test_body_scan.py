"""The data of a scan of bodies is found again, with few reads, however often it is requested."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pandomq.ids import ClusterId
from pandomq.journal.effects import FileName, Read
from pandomq.journal.limits import JournalSettings
from pandomq.journal.snapshots.body_scan import BodyScan
from pandomq.journal.snapshots.recipe import BODY_BYTES_MIN, Bodies, KnownBody, digest_of

NO_BODIES = Bodies(lambda _: [], lambda _: [], lambda: lambda _: [])
FILES = (FileName("one"), FileName("two"))


def body(number: int) -> bytes:
    return number.to_bytes(2) * (BODY_BYTES_MIN // 2 + number % 7)


class Store:
    """Two files, in which bodies stand with something in between."""

    def __init__(self, numbers: list[int]) -> None:
        self.reads = 0
        self.files = dict.fromkeys(FILES, b"")
        self.body_scan = BodyScan(JournalSettings(), ClusterId("c"), NO_BODIES)
        for number in numbers:
            file = FILES[number % 2]
            self.files[file] += b"between"
            self.body_scan._note(file, len(self.files[file]), body(number), [(0, len(body(number)))])
            self.files[file] += body(number)

    def find(self, numbers: list[int]) -> list[bytes] | None:
        work = self.body_scan.find([KnownBody(len(body(number)), digest_of(body(number))) for number in numbers])
        try:
            effects = next(work)
            while True:
                (effect,) = effects
                assert isinstance(effect, Read)
                self.reads += 1
                effects = work.send([self.files[effect.file][effect.offset : effect.offset + effect.length]])
        except StopIteration as end:
            found: list[bytes] | None = end.value
            return found


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.data())
def test_bodies_are_found_in_the_order_they_are_asked_for(numbers: list[int], data: st.DataObject) -> None:
    store = Store(numbers)
    wanted = data.draw(st.lists(st.sampled_from(numbers), max_size=30))
    assert store.find(wanted) == [body(number) for number in wanted]


def test_equal_bodies_and_neighbours_are_read_once() -> None:
    store = Store([2, 4, 6])
    assert store.find([4] * 1000) == [body(4)] * 1000
    assert store.reads == 1
    assert store.find([2, 2, 4, 6, 4, 2]) is not None
    assert store.reads == 2


def test_a_missing_body_is_not_found() -> None:
    assert Store([2]).find([2, 3]) is None
