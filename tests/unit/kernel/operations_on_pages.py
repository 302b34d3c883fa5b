"""Messages that leave memory and come back, late and in any order."""

from __future__ import annotations

from typing import Any

from tests.unit.kernel.operations import one, operation
from tests.unit.kernel.world import World


@operation(14)
def page_out(world: World, a: int, b: int, c: int) -> Any:
    world.use_pages(1 + a % 4, (20, 60, 1 << 20)[b % 3], (1, 1, 300, 1000)[c % 4])
    return world.page_out((1, 150, 1 << 30)[c % 3])


@operation(16)
def load(world: World, a: int, b: int, c: int) -> Any:
    return world.load(a)


@operation(1)
def load_something_else(world: World, a: int, b: int, c: int) -> Any:
    """Bytes that are not those of the page are refused, whatever they are."""
    page = one(world.wanted, a)
    if page is None or not page.count:
        return None
    data = world.blobs[page.owner]
    for wrong in (data[: b % len(data)], data + b"x", b"", world.blobs[c % len(world.blobs)] + b"y"):
        try:
            world.engine.loaded(page, wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)
    return None


@operation(2)
def revive(world: World, a: int, b: int, c: int) -> Any:
    """A queue like this one gets its pages, as after a restart."""
    queue = one(world.queues, a)
    if queue is None or sum(not queue.deleted for queue in world.queues) > 6:
        return None
    pages = queue.pages()
    if not pages:
        return None
    revived = world.queue(logged=True, **world.settings[queue.owner])
    for page in pages:
        index = page.index()
        if index is not None:
            reinstated = revived.reinstate_page(index, page.owner)
            world.paged.append(reinstated.owner)
    return world.view()


@operation(1)
def stop_paging(world: World, a: int, b: int, c: int) -> None:
    if a % 4 == 0:
        world.engine.paging_bytes = 0
