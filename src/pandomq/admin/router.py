"""From a path to an endpoint.

Works on the path as it was sent: a name may hold anything, also a slash, which is %2F in the path. So the path is split
first and each part decoded for itself. A part that is no UTF-8 names nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from pandomq.admin.refusals import Refusal, bad_request

if TYPE_CHECKING:
    from starlette.responses import Response

    from pandomq.admin.access import Access
    from pandomq.admin.call import Call

Handler = Callable[["Call"], Awaitable["Response"]]
CHANGES: Final = frozenset(("PUT", "POST", "DELETE"))


class Action(NamedTuple):
    access: Access
    handler: Handler
    here: bool
    """Any broker does it for itself; otherwise it is the root's."""


class Endpoint(NamedTuple):
    names: tuple[str, ...]
    """Of the parts that vary."""
    actions: Mapping[str, Action]
    """By method."""

    @property
    def allow(self) -> str:
        methods = [*(["HEAD"] if "GET" in self.actions else []), *self.actions, "OPTIONS"]
        return ", ".join(methods)


class _Branch:
    __slots__ = ("endpoint", "named", "other")

    def __init__(self) -> None:
        self.named: dict[str, _Branch] = {}
        self.other: _Branch | None = None
        self.endpoint: Endpoint | None = None


class Router:
    def __init__(self) -> None:
        self._root = _Branch()

    def add(self, template: str, actions: Mapping[str, Action]) -> None:
        """`template` is like api/queues/{vhost}/{queue}."""
        names: list[str] = []
        branch = self._root
        for part in template.split("/"):
            if part.startswith("{"):
                names.append(part[1:-1])
                branch.other = branch.other or _Branch()
                branch = branch.other
            else:
                branch = branch.named.setdefault(part, _Branch())
        assert branch.endpoint is None, f"{template} is there already"
        branch.endpoint = Endpoint(tuple(names), actions)

    def find(self, raw_path: bytes) -> tuple[Endpoint, dict[str, str]]:
        """Raises Refusal: 404 for a path that leads nowhere, 400 for one that cannot be read."""
        parts = [_decode(part) for part in raw_path.removeprefix(b"/").split(b"/")]
        if len(parts) > 1 and not parts[-1]:
            parts.pop()
        found = _search(self._root, parts, 0, ())
        if found is None:
            raise Refusal(404, "Object Not Found", "Not Found")
        endpoint, values = found
        return endpoint, dict(zip(endpoint.names, values, strict=True))


def _search(
    branch: _Branch, parts: list[str], position: int, values: tuple[str, ...]
) -> tuple[Endpoint, tuple[str, ...]] | None:
    if position == len(parts):
        return None if branch.endpoint is None else (branch.endpoint, values)
    part = parts[position]
    named = branch.named.get(part)
    if named is not None:
        found = _search(named, parts, position + 1, values)
        if found is not None:
            return found
    if branch.other is None:
        return None
    return _search(branch.other, parts, position + 1, (*values, part))


def _decode(part: bytes) -> str:
    octets = unquote_to_bytes(part)
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        raise bad_request("the path is not UTF-8") from None
