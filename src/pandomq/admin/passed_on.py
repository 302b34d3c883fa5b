"""A request that another broker has forwarded, in the form of a local one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from pandomq.runtime.http import HAS_DISCONNECTED

if TYPE_CHECKING:
    from pandomq.cluster.passed_requests import PassedRequest


class PassedOn(NamedTuple):
    by: str
    """The broker that got the request."""
    request: PassedRequest

    def as_request(self) -> Request:
        path, _, query = self.request.target.partition(b"?")
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self.request.headers]
        scope = {
            "type": "http",
            "method": self.request.method,
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "headers": headers,
            "client": None,
            "extensions": {HAS_DISCONNECTED: lambda: False},
        }
        return Request(scope, self._receive)

    async def _receive(self) -> Any:
        return {"type": "http.request", "body": self.request.body, "more_body": False}
