"""`pandomq` with a bug, for tests alone: a declare of the queue `poison` changes the state, and raises an exception.

The first argument is the time in seconds that the broker waits before it restarts its state; the others are those of
`pandomq`.
"""

from __future__ import annotations

import sys
from typing import Any

from pandomq.broker.state import ReplicatedState
from pandomq.cli.main import app
from pandomq.runtime.restart_delay import RestartDelay

POISON = "poison"
_apply = ReplicatedState.apply


def _fail(state: ReplicatedState, command: Any) -> None:
    _apply(state, command)
    if getattr(command, "name", "") == POISON and hasattr(command, "arguments"):
        raise RuntimeError("a bug that a test has planted")


if __name__ == "__main__":
    rest_s = float(sys.argv.pop(1))
    # `setattr` is used because a type checker rejects the plain assignment of a function to a method.
    setattr(ReplicatedState, "apply", _fail)  # noqa: B010
    setattr(RestartDelay, "pause_s", lambda _self, _now_s: rest_s)  # noqa: B010
    app()
