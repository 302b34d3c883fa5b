"""The ledgers of publishers and consumers, line by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pandomq.ledger import KINDS, LINE_BYTES_MAX, Ledger


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_for_each_of_its_kinds(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with Ledger(path) as ledger:
        ledger.published("m1", routing_key="q", at_s=1.0)
        ledger.confirmed("m1", routing_key="q", at_s=2.5)
        ledger.published("m2", queue="q", channel=3, at_s=3.0)
        ledger.delivered("q", "m1", at_s=4.0)
        ledger.acked("q", "m1", at_s=5.0)
        ledger.rejected("q", "m2", at_s=6.0)
        ledger.purged("q", at_s=7.0)
    found = lines(path)
    assert [line["kind"] for line in found] == [
        "opened",
        "published",
        "confirmed",
        "published",
        "delivered",
        "acked",
        "rejected",
        "purged",
    ]
    assert {line["kind"] for line in found} == set(KINDS)
    assert found[2] == {"kind": "confirmed", "exchange": "", "routing_key": "q", "message_id": "m1", "time": 2.5}
    assert found[3] == {"kind": "published", "queue": "q", "message_id": "m2", "channel": 3, "time": 3.0}
    assert found[4] == {"kind": "delivered", "queue": "q", "redelivered": False, "message_id": "m1", "time": 4.0}


def test_a_ledger_continues_behind_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with Ledger(path, "other", sync=True) as ledger:
        ledger.acked("q", "m1")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind":"ack')
    with Ledger(path) as ledger:
        ledger.acked("q", "m2")
    *_, torn, opened, last = path.read_bytes().splitlines()
    assert torn == b'{"kind":"ack'
    assert json.loads(opened)["kind"] == "opened"
    assert json.loads(last)["message_id"] == "m2"
    assert json.loads(whole.splitlines()[1])["vhost"] == "other"


def test_a_line_is_bounded(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger, pytest.raises(ValueError, match="is limited to"):
        ledger.acked("q", "m" * LINE_BYTES_MAX)
