"""Paths to endpoints, with names that hold anything."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.admin.access.tags import EndpointAccess
from pandomq.admin.call import HttpCall
from pandomq.admin.refusals import Refusal
from pandomq.admin.responses import Json
from pandomq.admin.router import Action, HttpRouter
from pandomq.admin.routes import make_router

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


async def nothing(_call: HttpCall) -> Json:
    return Json({})


def router(*templates: str) -> HttpRouter:
    made = HttpRouter()
    for template in templates:
        made.add(template, {"GET": Action(EndpointAccess.OPEN, nothing, here=True)})
    return made


@given(names, names)
def test_every_name_comes_back_as_it_was(vhost: str, queue: str) -> None:
    path = f"/api/queues/{quote(vhost, safe='')}/{quote(queue, safe='')}"
    _, values = router("api/queues/{vhost}/{queue}").find(path.encode())  # noqa: RUF027 - a template
    assert values == {"vhost": vhost, "queue": queue}


def test_a_literal_part_of_a_path_takes_precedence_over_a_name() -> None:
    paths = router(
        "users/{user}", "users/without-permissions", "connections/username/{user}", "connections/{name}/channels"
    )
    assert paths.find(b"/users/without-permissions")[1] == {}
    assert paths.find(b"/users/with")[1] == {"user": "with"}
    assert paths.find(b"/connections/username/u")[1] == {"user": "u"}
    # A connection may be called so; only what follows tells.
    assert paths.find(b"/connections/username/channels")[1] == {"user": "channels"}
    assert paths.find(b"/connections/other/channels")[1] == {"name": "other"}


def test_empty_names_count_within_a_path_but_not_at_its_end() -> None:
    paths = router("bindings/{vhost}/e/{source}/q/{queue}", "queues")
    assert paths.find(b"/bindings/%2F/e//q/h")[1] == {"vhost": "/", "source": "", "queue": "h"}
    assert paths.find(b"/queues/")[1] == {}


@pytest.mark.parametrize("path", [b"/", b"/nosuch", b"/queues/x", b"/queues//", b"//queues", b"queues/../queues"])
def test_an_unknown_path_is_404(path: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        router("queues").find(path)
    assert refused.value.status == 404


@pytest.mark.parametrize("part", [b"%FF", b"%C3", b"%ED%A0%80", b"\xff"])
def test_a_name_that_is_no_text_is_400(part: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        router("queues/{queue}").find(b"/queues/" + part)
    assert refused.value.status == 400


def test_every_path_that_needs_a_vhost_names_one() -> None:
    """The check of vhosts takes it from the path."""
    branches = [make_router()._root]
    endpoints = []
    while branches:
        branch = branches.pop()
        branches += branch.named.values()
        branches += [] if branch.other is None else [branch.other]
        endpoints += [] if branch.endpoint is None else [branch.endpoint]
    assert len(endpoints) > 60
    for endpoint in endpoints:
        for action in endpoint.actions.values():
            if action.access in (EndpointAccess.VHOST, EndpointAccess.POLICIES):
                assert "vhost" in endpoint.names


def test_allowed_methods_are_named() -> None:
    endpoint, _ = make_router().find(b"/api/queues/v/q")
    assert endpoint.allow == "HEAD, GET, PUT, DELETE, OPTIONS"
