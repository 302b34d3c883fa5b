"""Subscribers on every broker receive everything once; `make torture` has ten thousand of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .crowd_case import crowd


@pytest.mark.proves("R3", "R27", "R30", "R31", "R36")
def test_subscribers_receive_each_message_once_wherever_a_broker_survives(tmp_path: Path) -> None:
    crowd(tmp_path, 400)
