"""Ledgers as rows, whatever is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pandomq.ledger import Ledger
from pandomq.pipeline.audit import ledgers
from pandomq.pipeline.audit.ledgers import UNREADABLE, ledger_rows


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for batch in ledger_rows(7, str(path)) for row in batch.to_pylist()]


def test_lines_are_rows_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    for life in range(2):
        with Ledger(path, "v") as ledger:
            for number in range(20):
                ledger.published(f"{life}.{number}", exchange="e", routing_key="k", at_s=number)
            ledger.delivered("q", "x", redelivered=True, channel=3)
    whole = rows(path)
    assert [row["row"] for row in whole] == list(range(44))
    assert [row["life"] for row in whole] == [1] * 22 + [2] * 22
    assert {row["vhost"] for row in whole} == {"v"} and {row["ledger"] for row in whole} == {7}
    assert whole[1]["exchange"] == "e" and whole[1]["time"] == 0.0 and whole[1]["channel"] == 0
    assert whole[-1]["redelivered"] is True and whole[-1]["channel"] == 3
    monkeypatch.setattr(ledgers, "LEDGER_BLOCK_BYTES", 100)
    assert rows(path) == whole, "blocks do not show"


def test_lines_that_cannot_be_read_are_rows_too_and_a_last_one_without_its_end_is_none(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_text(
        '{"kind":"acked","queue":"q","message_id":"a","time":1.5}\n'
        "what is this\n"
        '{"kind":"loved","queue":"q","message_id":"a","time":1.5}\n'
        '{"kind":"acked","queue":"q","message_id":5,"time":1.5}\n'
        '{"kind":"acked","queue":"q","message_id":"b","time":2}\n'
        '{"kind":"acked","queue":"q","mess'
    )
    found = rows(path)
    assert [row["kind"] for row in found] == ["acked", UNREADABLE, UNREADABLE, UNREADABLE, "acked"]
    assert [row["message_id"] for row in found if row["kind"] == "acked"] == ["a", "b"]


def test_an_empty_ledger_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_bytes(b"")
    assert rows(tmp_path / "ledger") == []
