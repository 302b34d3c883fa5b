"""Maps a path to an endpoint.

It works on the path as it was sent: a name may contain anything, also a slash, which is %2F in the path. So the path is
split first and each part is decoded separately. A part that is not UTF-8 matches nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from pandomq.admin.refusals import Refusal, bad_request

if TYPE_CHECKING:
    from starlette.responses import Response

    from pandomq.admin.access.tags import EndpointAccess
    from pandomq.admin.call import HttpCall

Handler = Callable[["HttpCall"], Awaitable["Response"]]
CHANGES: Final = frozenset(("PUT", "POST", "DELETE"))


class Action(NamedTuple):
    access: EndpointAccess
    handler: Handler
    here: bool
    """Any broker carries it out itself; otherwise it goes to the root."""
    large: bool = False
    """Its body may be large."""
    answer_bytes_max: int = 0
    """Of an answer that may be large, and for which room is taken in advance."""
    changes: bool = False
    """It may change something, so no page of another site may request it."""


class Endpoint(NamedTuple):
    names: tuple[str, ...]
    """The names of the variable parts."""
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


class HttpRouter:
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
        """Raises Refusal: 404 for an unknown path, 400 for a malformed one."""
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
        raise bad_request("the request path is not valid UTF-8") from None
