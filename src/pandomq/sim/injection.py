"""Unexpected exceptions, raised at a call inside the production code while a broker works."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from inspect import CO_GENERATOR
from types import CodeType, FrameType
from typing import Any, Final, ParamSpec, TypeVar

from pandomq.broker.broker import Broker
from pandomq.broker.hooks import BrokerHooks
from pandomq.broker.streams.streams import Streams
from pandomq.node.clients.input_router import InputRouter
from pandomq.node.data.sessions import DataSessions
from pandomq.node.pending_commands import PendingCommands

ROOMS: Final = ("/pandomq/broker/", "/pandomq/node/", "/pandomq/cluster/")
"""The packages in which an exception may be raised."""
ENTRIES_MAX: Final = 1_000
"""The exception is given up after so many steps and reports without one: counting calls takes as much time as the
calls."""
OUTSIDE: Final = frozenset({"Node.step", "Node.receive"})
"""Calls that no guard surrounds."""
COMPREHENSIONS: Final = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
"""Calls in some versions of Python and none in others. Generators do not count either: the interpreter determines when
an abandoned generator ends, and whether that is a call, and no code receives an exception that is raised then."""
_REQUESTS: Final = (
    Broker._method,
    BrokerHooks.publish,
    DataSessions._begin,
    DataSessions.receive,
    DataSessions.sent,
    InputRouter.receive,
    PendingCommands.submit,
    Streams._serve,
    Broker.change,
)
"""The calls in which a broker handles a client's request; the last one already changes state for it. A test checks that
worlds make all of these calls."""
REQUESTS: Final = tuple(request.__qualname__ for request in _REQUESTS)

P = ParamSpec("P")
T = TypeVar("T")


class Injected(Exception):
    """An exception that stands for any bug."""


class Injection:
    """Counts calls, over as many steps and reports as necessary, and raises Injected at the last one."""

    def __init__(self, calls: int, *, within: str | None, told: Callable[[], None]) -> None:
        """`within` is one of REQUESTS: only calls inside of it count. `told` is called before the exception is
        raised."""
        self._left = calls
        self._entries_left = ENTRIES_MAX
        self._within = within
        self._told = told
        self._request: FrameType | None = None

    def around(self, call: Callable[P, T]) -> Callable[P, T]:
        """Wraps the call, so that it raises the exception when the count is reached."""
        if self._left == 0 or self._entries_left == 0:
            return call

        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            self._entries_left -= 1
            sys.setprofile(self._look)
            try:
                return call(*args, **kwargs)
            finally:
                sys.setprofile(None)
                self._request = None

        return run

    def _look(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            if self._request is None and self._within is not None:
                if code.co_qualname == self._within and _counts(code):
                    self._request = frame
            elif _counts(code):
                self._left -= 1
                if self._left <= 0:
                    sys.setprofile(None)
                    self._left = 0
                    self._told()
                    raise Injected(f"at {code.co_qualname}")
        elif event == "return" and frame is self._request:
            self._request = None


@cache
def _counts(code: CodeType) -> bool:
    place = code.co_filename
    if code.co_flags & CO_GENERATOR or code.co_name in COMPREHENSIONS:
        return False
    return any(room in place for room in ROOMS) and "containment" not in place and code.co_qualname not in OUTSIDE
