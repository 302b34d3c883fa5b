"""Laws of founding a cluster, tried on many schedules; and what a broker says while it waits."""

from __future__ import annotations

import pytest

from pandomq.cluster.founding import Begin, Founding, Join, Primary, Save, SendFounding
from pandomq.cluster.founding_messages import (
    BadFoundingMessage,
    Founder,
    FoundingAttempt,
    Tell,
    decode_message,
    encode_message,
)
from tests.unit.cluster.founding_world import World

SCHEDULES = 1_000
STEPS = 300


def founded(world: World) -> None:
    world.check()
    ids = {store.cluster_id for store in world.stores.values()}
    assert len(ids) == 1 and "" not in ids, f"not all belong to one cluster: {ids}"
    for name, store in world.stores.items():
        assert store.votes == (world.attempt_of(name).store_of(name) == store.id)


@pytest.mark.parametrize("names", ["a", "ab", "abc", "abcde"])
def test_when_nothing_breaks_all_vote_in_one_cluster(names: str) -> None:
    world = World(names, 1)
    world.settle()
    founded(world)
    assert all(store.votes for store in world.stores.values())


@pytest.mark.proves("R21")
@pytest.mark.parametrize("names", ["ab", "abc"])
def test_one_cluster_begins_and_no_broker_forgets_a_vote_whatever_breaks(names: str) -> None:
    for seed in range(SCHEDULES):
        world = World(names, seed)
        for _ in range(STEPS):
            world.disturb()
        world.settle()
        founded(world)
        if not world.wiped_since:
            assert all(store.votes for store in world.stores.values()), f"seed {seed}: somebody may not vote"


def test_a_cluster_of_which_all_but_one_lost_their_stores_is_not_founded_again() -> None:
    world = World("abc", 1)
    world.settle()
    first = world.stores["b"].cluster_id
    for name in "ac":
        world.wipe(name)
    world.settle()
    assert {store.cluster_id for store in world.stores.values()} == {first}
    assert [store.votes for store in world.stores.values()] == [False, True, False]


@pytest.mark.proves("R21")
@pytest.mark.parametrize("by", ["a", "b"])
def test_a_broker_with_bootstrap_founds_alone_and_the_first_stores_of_the_others_vote(by: str) -> None:
    world = World("abc", 1)
    world.start(by, bootstrap=True)
    world.sync(by)
    assert world.stores[by].votes
    world.settle()
    founded(world)
    assert all(store.votes for store in world.stores.values())
    world.wipe("c")
    world.settle()
    founded(world)
    assert not world.stores["c"].votes


def test_crashes_after_a_founding_alone_lose_no_vote() -> None:
    for seed in range(SCHEDULES // 3):
        world = World("abc", seed)
        world.start("b", bootstrap=True)
        world.sync("b")
        for _ in range(STEPS):
            world.disturb()
        if not any(store.cluster_id for store in world.stores.values()):
            continue
        world.settle()
        founded(world)


def everybody_votes(self: Founding, effect: Begin | Join) -> None:
    lost = isinstance(effect, Join) and effect.attempt is not None
    END(self, Begin(effect.attempt) if lost and effect.attempt is not None else effect)


def unsaved_is_told(self: Founding, attempt: FoundingAttempt) -> None:
    SAVE(self, attempt)
    self._saves_awaited = 0
    self._tell_all()


def nobody_is_waited_for(self: Founding) -> None:
    PROPOSE(self)
    if not self._saves_awaited and not self._over and self._attempt is not None:
        self._end(Begin(self._attempt))


END, SAVE, PROPOSE, SAVED = Founding._end, Founding._save, Founding._propose, Founding.saved


@pytest.mark.parametrize(
    ("method", "replacement"),
    [("_end", everybody_votes), ("_save", unsaved_is_told), ("_propose", nobody_is_waited_for)],
)
def test_the_search_finds_planted_bugs(monkeypatch: pytest.MonkeyPatch, method: str, replacement: object) -> None:
    monkeypatch.setattr(Founding, method, replacement)
    monkeypatch.setattr(Founding, "saved", lambda self: SAVED(self) if self._saves_awaited else None)
    with pytest.raises(AssertionError):
        test_one_cluster_begins_and_no_broker_forgets_a_vote_whatever_breaks("abc")


# One broker.


def founding(name: str, names: str = "abc", *, store: str = "s", joins: bool = False) -> Founding:
    primaries = [Primary(other, f"{other}:5672") for other in names]
    made = Founding(name, store, primaries, cluster_id="", attempt=None, draw_id=lambda: "id", joins=joins)
    made.start()
    return made


def told(store: str, names: str = "abc", cluster_id: str = "", attempt: FoundingAttempt | None = None) -> Tell:
    return Tell(store, tuple(names), cluster_id, attempt)


def test_the_missing_primaries_are_named() -> None:
    one = founding("a")
    assert one.waiting == "waiting for b, c"
    one.connected("b")
    assert one.waiting == "waiting for b, c"
    one.received("b", told("t"))
    assert one.waiting == "waiting for c"
    one.disconnected("b")
    assert one.waiting == "waiting for b, c"


def test_a_primary_with_a_different_list_is_named_and_nothing_is_founded() -> None:
    one = founding("a")
    for peer in "bc":
        one.connected(peer)
    one.received("b", told("t"))
    one.received("c", told("u", "ac"))
    assert one.waiting == "c is configured with different primaries: a, c"
    assert all(isinstance(effect, SendFounding) for effect in one.take_effects())


def test_a_broker_connected_to_two_clusters_joins_neither() -> None:
    one = founding("a")
    one.connected("b")
    one.connected("c")
    one.received("b", told("t", cluster_id="x", attempt=FoundingAttempt(1, "x", (Founder("a", "", ""),), "d")))
    one.received("c", told("u", cluster_id="y"))
    assert one.waiting == "connected to brokers of different clusters: x, y"
    assert all(isinstance(effect, SendFounding) for effect in one.take_effects())


def test_a_broker_that_joins_a_cluster_founds_nothing() -> None:
    one, first = founding("b", joins=True), founding("a")
    one.connected("a")
    assert one.waiting == "waiting for a broker of the cluster that it joins"
    for effect in one.take_effects():
        assert isinstance(effect, SendFounding)
        first.connected("b")
        first.connected("c")
        first.received("c", told("u"))
        first.received("b", effect.message)
    assert first.waiting == "b is configured with different primaries: none"


def test_a_state_is_sent_only_after_it_was_saved() -> None:
    one = founding("a", "ab")
    one.connected("b")
    one.received("b", told("t", "ab"))
    saves = [effect for effect in one.take_effects() if isinstance(effect, Save)]
    assert len(saves) == 1
    one.tick(10_000)
    assert one.take_effects() == []
    one.saved()
    assert all(isinstance(effect, SendFounding) for effect in one.take_effects())


def test_too_long_a_list_is_not_begun_with() -> None:
    names = [f"{number}{'x' * 300}" for number in range(15)]
    one = Founding(
        names[0], "s", [Primary(name, "") for name in names], cluster_id="", attempt=None, draw_id=lambda: "id"
    )
    for name in names[1:]:
        one.connected(name)
        one.received(name, Tell("t", tuple(sorted(names)), "", None))
    assert one.waiting == "the names and addresses of the primaries are too long"


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x01\x91\x07", b"\x01\x92\x01\xa1\xff"])
def test_malformed_messages_are_refused(data: bytes) -> None:
    with pytest.raises(BadFoundingMessage):
        decode_message(data)


def test_messages_come_back_as_they_were() -> None:
    message = told("s", cluster_id="x", attempt=FoundingAttempt(3, "x", (Founder("a", "h:1", "s"),), "a"))
    assert decode_message(encode_message(message)) == message
