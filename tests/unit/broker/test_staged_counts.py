"""What staging costs a user does not depend on what others have staged, and the counts are always right."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from pandomq.broker.log.commands import DeleteVhost, PutPermissions, PutVhost
from pandomq.broker.staging.attempts import StagingAttempts
from pandomq.broker.staging.names import StagingAttempt
from tests.unit.broker.conversation import World
from tests.unit.broker.staging_scene import COMMITTED, STAGED, Sink, frames, prepared
from tests.unit.broker.test_snapshot import restored, revived


class Watched(dict[str, Any]):
    """A table of queues that nothing may walk through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all inner queues are walked through")

    items = values = keys = __iter__  # type: ignore[assignment]


def check(world: World) -> None:
    world.broker.state.attempts.check(world.broker.state.vhosts.values())


def test_no_request_walks_through_the_attempts_of_all() -> None:
    _, sink = prepared()
    sink.vhost.inner_queues = Watched(sink.vhost.inner_queues)
    sink.stage(frames("1"))
    sink.stage(frames("2"), 1)
    sink.stage(frames("lost"), attempt="b")
    sink.commit((0, "a", 2))
    sink.stage(frames("3"), batch=1)
    sink.drop((0, "a"), batch=1)
    assert sink.last_batch() == 0
    assert sink.heard() == [STAGED, STAGED, STAGED, COMMITTED, STAGED, "dropped"]
    assert dict.__len__(sink.vhost.inner_queues) == 0


@pytest.mark.parametrize("seed", range(5))
def test_counts_agree_with_a_recount_after_any_requests(seed: int) -> None:
    random = Random(seed)
    world, _ = prepared()
    assert world.administer(PutVhost("other", "", ()), PutPermissions("other", "guest", ".*", ".*", ".*")) is None
    world.admit("ann")
    for round_ in range(60):
        user, query = random.choice(("guest", "ann")), random.choice("vw")
        sink = Sink(world, user=user, query=query)
        batch = world.broker.state.staged.last_batch("/", user, query) + random.randint(1, 2)
        attempt = f"{user}{round_}"
        if random.random() < 0.2:
            Sink(world, vhost="other", query=query).stage(frames("x", key="q"), attempt=attempt, batch=batch)
        for part in range(random.randint(1, 3)):
            sink.stage(frames(*"ab"[: random.randint(0, 2)]), part, attempt=attempt, batch=batch)
        kind = random.choice(("keep", "drop", "commit", "open"))
        if kind == "drop":
            sink.drop((0, attempt), batch=batch)
        elif kind != "keep":
            parts = world.broker.state.vhosts["/"].inner_queues[StagingAttempt(batch, 0, attempt, query).queue_name]
            (sink.commit if kind == "commit" else sink.ask_commit)(
                (0, attempt, parts.kernel.next_sequence - 1), batch=batch
            )
        check(world)
    attempts = world.broker.state.attempts
    assert attempts.count_of("guest") > 5
    assert attempts.bytes_of("guest") > 100
    world.run([])
    for other in (world, world.replayed(), restored(world), revived(world)):
        check(other)
        found = other.broker.state.attempts
        assert [(found.count_of(user), found.bytes_of(user)) for user in ("guest", "ann")] == [
            (attempts.count_of(user), attempts.bytes_of(user)) for user in ("guest", "ann")
        ]
        check(other)
    assert world.administer(DeleteVhost("other")) is None
    check(world)


def test_a_broker_that_was_asked_for_sizes_and_then_follows_counts_anew() -> None:
    """A broker that follows is asked for its metrics between two entries."""
    world, sink = prepared()
    sink.stage(frames("1"))
    follower = World(seed=2)
    attempts = follower.broker.state.attempts
    for index, entry in enumerate(world.entries, start=1):
        follower.broker.apply(index, 1, entry)
        assert attempts.size_bytes in (0, len(frames("1")))
    assert attempts.size_bytes == world.broker.state.attempts.size_bytes == len(frames("1"))


def test_a_wrong_count_is_found() -> None:
    for name in ("add", "remove", "resized"):
        world, sink = prepared()
        sink.stage(frames("1"))
        check(world)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StagingAttempts, name, lambda *_: None)
            if name == "remove":
                sink.drop((0, "a"))
            else:
                sink.stage(frames("2"), 1 if name == "resized" else 0, attempt="a" if name == "resized" else "b")
            with pytest.raises(AssertionError):
                check(world)
