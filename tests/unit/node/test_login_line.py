"""The line for the slow hash: turns, rests, and nobody forgotten."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pandomq.node.clients.login_line import LoginLine


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


def test_a_user_whose_login_failed_rests_and_delays_no_other() -> None:
    line = line_of("au1", "au2", "av1", "bu1")
    assert line.take() == "au1"
    line.answered("a", "u", rests=True)
    line.put("a", "u", "au3")
    assert take_all(line) == ["bu1", "av1"]
    line.rested("a", "u")
    assert take_all(line) == ["au2", "au3"]


def test_a_rest_with_no_attempt_behind_it_leaves_nothing_behind() -> None:
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
def test_no_attempt_is_forgotten_and_those_of_one_user_stay_in_order(steps: list[str], random: Random) -> None:
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


def test_the_newest_of_the_first_line_is_ahead_of_all() -> None:
    line = line_of("au1", "av1", "bu1")
    line.put("c", "x", "cx1", first=True)
    line.put("c", "x", "cx2", first=True)
    line.put("a", "y", "ay1", first=True)
    assert take_all(line) == ["ay1", "cx1", "cx2", "au1", "bu1", "av1"]


def test_a_user_that_waits_in_the_common_line_stays_there() -> None:
    line = line_of("au1", "av1")
    line.put("a", "v", "av2", first=True)
    assert take_all(line) == ["au1", "av1", "av2"]


def test_a_wrong_password_of_the_first_line_waits_in_the_common_one() -> None:
    line = line_of("au1", "bu1")
    line.put("a", "x", "ax1", first=True)
    line.put("a", "x", "ax2", first=True)
    assert line.take() == "ax1"
    line.answered("a", "x", rests=True)
    line.put_refused("a", "x", "ax1 refused")
    assert take_all(line) == ["au1", "bu1", "ax1 refused"]
    line.rested("a", "x")
    assert take_all(line) == ["ax2"]


def test_users_that_others_guess_at_wait_behind_all_other_users() -> None:
    """From ever more networks: each of them is the first login of that user from there."""
    line: LoginLine[str] = LoginLine()
    for network in "abc":
        line.put(network, "u", f"{network}u", first=True)
    assert line.take() == "cu"
    line.put("g", "x", "gx", first=True)
    line.put("d", "u", "du", first=True)
    line.answered("c", "u", rests=True)
    line.put("e", "u", "eu", first=True, guessed=True)
    line.put("f", "z", "fz")
    assert take_all(line) == ["gx", "eu", "fz", "du", "bu", "au"]


def test_guesses_at_one_user_do_not_delay_the_common_line() -> None:
    line = line_of("au1", "bu1", "cu1")
    taken = []
    for number in range(6):
        line.put(f"{number}", "v", f"{number}v", first=True, guessed=True)
        taken.append(line.take())
        line.answered("?", "?", rests=False)
    assert taken == ["0v", "au1", "2v", "bu1", "4v", "cu1"]
