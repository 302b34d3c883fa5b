"""Clients that the broker does not read from are not blamed for their silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pandomq.node.clients.client_link import ClientLink
from pandomq.node.clients.client_links import ClientLinks
from pandomq.node.clients.deadlines import BUCKET_MS
from pandomq.node.clients.incomplete import IncompleteMessages
from pandomq.node.settings import NodeSettings
from tests.unit.wire.peer import running

LONG_MS = 60_000


class Scene:
    def __init__(self) -> None:
        self.links = ClientLinks(IncompleteMessages(NodeSettings()), 0)
        self.link = ClientLink(None, ("127.0.0.1", 5), running(heartbeat=1))
        self.links.add(self.link)
        self._now_ms = 0

    def is_kept_for(self, elapsed_ms: int) -> bool:
        until_ms = self._now_ms + elapsed_ms
        while self._now_ms < until_ms and not self.link.gone:
            self._now_ms += BUCKET_MS
            self.links.tick(self._now_ms)
        return not self.link.gone


def test_a_silent_client_is_given_up() -> None:
    scene = Scene()
    assert scene.is_kept_for(2_000)
    assert not scene.is_kept_for(1_000)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (lambda scene: scene.links.block(scene.link, "low on memory"), lambda scene: scene.links.unblock(scene.link)),
        (lambda scene: scene.links.pace(scene.link), lambda scene: scene.links.unpace_all()),
        (lambda scene: scene.links.rest(resting=True), lambda scene: scene.links.rest(resting=False)),
    ],
    ids=["blocked", "paced", "resting"],
)
def test_a_client_that_is_not_read_from_is_kept(begin: Callable[[Scene], None], end: Callable[[Scene], None]) -> None:
    scene = Scene()
    begin(scene)
    assert scene.is_kept_for(LONG_MS)
    end(scene)
    assert scene.is_kept_for(2_000)
    assert not scene.is_kept_for(1_000)
