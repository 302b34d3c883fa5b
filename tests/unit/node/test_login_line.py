"""The line for the slow hash: turns, rests, and nobody forgotten."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pandomq.node.login_line import LoginLine


def take_all(line: LoginLine[str]) -> list[str]:
    """Everybody, as if all passwords were right."""
    taken = []
    while (item := line.take()) is not None:
        taken.append(item)
        line.answered(item[0], item[1], rests=False)
    return taken


def line_of(*items: str) -> LoginLine[str]:
    """Items are an address of one letter, a user of one letter, and what tells them apart."""
    line: LoginLine[str] = LoginLine()
    for item in items:
        line.put(item[0], item[1], item)
    return line


def test_one_at_a_time() -> None:
    line = line_of("au1", "bu1")
    assert line.take() == "au1"
    assert line.take() is None
    line.answered("a", "u", rests=False)
    assert line.take() == "bu1"


def test_addresses_take_turns_and_so_do_the_users_of_one() -> None:
    line = line_of("au1", "au2", "au3", "av1", "bu1", "cu1")
    assert take_all(line) == ["au1", "bu1", "cu1", "av1", "au2", "au3"]


def test_who_failed_rests_and_holds_up_nobody_else() -> None:
    line = line_of("au1", "au2", "av1", "bu1")
    assert line.take() == "au1"
    line.answered("a", "u", rests=True)
    line.put("a", "u", "au3")
    assert take_all(line) == ["bu1", "av1"]
    line.rested("a", "u")
    assert take_all(line) == ["au2", "au3"]


def test_a_rest_with_nobody_behind_ends_without_a_trace() -> None:
    line = line_of("au1")
    assert line.take() == "au1"
    line.answered("a", "u", rests=True)
    line.rested("a", "u")
    line.rested("a", "u")
    assert line.take() is None
    line.put("a", "u", "au2")
    assert line.take() == "au2"


STEPS = st.lists(st.sampled_from(["put", "take", "fail", "fit", "rested"]), max_size=60)


@given(STEPS, st.randoms(use_true_random=False))
def test_nobody_is_forgotten_and_the_same_user_stays_in_order(steps: list[str], random: Random) -> None:
    line: LoginLine[tuple[str, str, int]] = LoginLine()
    put: list[tuple[str, str, int]] = []
    taken: list[tuple[str, str, int]] = []
    busy: tuple[str, str, int] | None = None
    resting: set[tuple[str, str]] = set()
    for number, step in enumerate(steps):
        match step:
            case "put":
                item = (random.choice("ab"), random.choice("uv"), number)
                line.put(item[0], item[1], item)
                put.append(item)
            case "take":
                found = line.take()
                if found is not None:
                    assert busy is None
                    assert found[:2] not in resting
                    taken.append(found)
                    busy = found
            case "fail" | "fit" if busy is not None:
                line.answered(busy[0], busy[1], rests=step == "fail")
                if step == "fail":
                    resting.add(busy[:2])
                busy = None
            case "rested" if resting:
                line.rested(*resting.pop())
    if busy is not None:
        line.answered(busy[0], busy[1], rests=False)
    for key in resting:
        line.rested(*key)
    while (left := line.take()) is not None:
        taken.append(left)
        line.answered(left[0], left[1], rests=False)
    assert sorted(taken, key=lambda item: item[2]) == put
    for key in {item[:2] for item in put}:
        assert [item for item in taken if item[:2] == key] == [item for item in put if item[:2] == key]
