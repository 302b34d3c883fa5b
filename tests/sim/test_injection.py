"""Exceptions are injected where brokers handle requests: worlds must make these calls."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from pandomq.sim.campaigns.campaign import Job, run_job
from pandomq.sim.injection import REQUESTS

WITH_STREAMS = 41


def test_a_world_makes_every_call_at_which_exceptions_are_injected() -> None:
    made = set[str]()

    def look(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_qualname in REQUESTS:
            made.add(frame.f_code.co_qualname)

    sys.setprofile(look)
    try:
        run_job(Job(WITH_STREAMS))
    finally:
        sys.setprofile(None)
    assert made == set(REQUESTS)
