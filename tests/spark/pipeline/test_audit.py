"""Audits of the logs of three real brokers and the ledgers of their clients, unchanged and with planted violations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pandomq.journal.hard_state import decode_copy, encode_copy
from pandomq.journal.limits import STATE_COPY_BYTES
from pandomq.kernel.records import DequeueRecord, EnqueueRecord
from pandomq.pipeline.audit.findings import Findings, Promise, Verdict
from pandomq.pipeline.audit.job import Audit, AuditOptions
from pandomq.pipeline.audit.stores import NoStore
from pandomq.pipeline.audit.verdict import ExitCode, exit_code, summarize
from pandomq.pipeline.report import render
from pandomq.properties import read_property
from tests.spark.pipeline.audit_world import MESSAGES, QUEUE, World, make_world
from tests.spark.pipeline.job_process import job
from tests.support.log_editor import all_entries, change_entries, records_of, segment_paths, with_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Three brokers, and then Spark, on a machine that may be busy with other things.
pytestmark = pytest.mark.timeout(900)

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("audit"))


def audited(spark: SparkSession, world: World, *, ledgers: bool = True, **more: Any) -> Audit:
    audit = Audit(spark, AuditOptions(world.stores, world.ledgers if ledgers else (), **more))
    audit.run()
    return audit


def edit_ledger(path: Path, change: Callable[[Lines], Lines]) -> None:
    lines = change([json.loads(line) for line in path.read_text().splitlines()])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def verdicts(findings: Findings) -> dict[Promise, Verdict]:
    return {promise: statement.verdict for promise, statement in findings.statements.items()}


def entry_with(store: Path, message: bytes) -> int:
    """Returns the index of the entry that puts a message of this id into a queue."""
    for index, _, payload in all_entries(store):
        for record in records_of(payload):
            if isinstance(record, EnqueueRecord) and message in record.header:
                return index
    raise AssertionError(f"{message!r} is in no entry")


@pytest.mark.proves("S6")
def test_the_promises_are_proven_for_a_correct_run(spark: SparkSession, world: World, tmp_path: Path) -> None:
    audit = audited(spark, world)
    assert set(verdicts(audit.findings).values()) == {Verdict.PROVEN}, audit.findings.statements
    assert exit_code(audit.findings) is ExitCode.PROVEN
    assert audit.account.entered == MESSAGES
    assert audit.findings.of(Promise.CONFIRMED).judged == MESSAGES
    summary = summarize(audit)
    assert summary.good and summary.verdict.startswith("proven for entries 1 to ")
    assert "<svg" in render("audit", [summary])
    assert json.loads(summary.to_json())["tables"]["Promises"][0]["verdict"] == "proven"


@pytest.mark.proves("S6")
def test_planted_violations_are_found(spark: SparkSession, world: World, tmp_path: Path) -> None:
    """Violations of each kind at once, each on messages of its own; the audit reports nothing else."""
    planted = world.copy(tmp_path)
    ids = [f"m{number}" for number in range(MESSAGES) if number % 3]
    places = places_of(planted.stores[0])
    last = max(index for index, _, payload in all_entries(planted.stores[0]) if records_of(payload))
    lost, lost_of_exchange, unseen, back, early, late, other = (
        ids[150],
        "m99",
        ids[155],
        ids[0],
        *ids[140:142],
        ids[130],
    )
    swapped = {early: places[late], late: places[early]}

    def plant(index: int, term: int, payload: bytes) -> tuple[int, bytes]:
        records = []
        for record in records_of(payload):
            message = id_of(record)
            if message in swapped:
                assert isinstance(record, EnqueueRecord)
                record = EnqueueRecord((swapped[message],), record.routing, record.header, record.body)
            if message not in (lost, lost_of_exchange):
                records.append(record)
        if index == last:
            queue_id, sequence = places[unseen]
            records.append(DequeueRecord(queue_id, sequence, 1))
            records.append(EnqueueRecord((places[back],), b"\x00\x06orders", header_of(planted.stores[0], back), b""))
        return term, with_records(payload, records) if records_of(payload) else payload

    header = header_of(planted.stores[0], back)
    assert back.encode() in header
    change_entries(planted.stores, plant)
    at = entry_with(planted.stores[0], other.encode())
    change_entries(
        planted.stores[:1],
        lambda index, term, payload: (term, payload.replace(b"body", b"soul") if index == at else payload),
    )

    def tell(lines: Lines) -> Lines:
        came = next(line for line in lines if line["kind"] == "delivered" and line["message_id"] == ids[1])
        first, second = (
            place
            for place, line in enumerate(lines)
            if line["kind"] == "delivered" and line["message_id"] in ids[20:22]
        )
        lines[first], lines[second] = lines[second], lines[first]
        return [*lines, came | {"time": came["time"] + 60, "redelivered": True}]

    edit_ledger(planted.consumer, tell)
    told_late = {"exchange": "", "routing_key": QUEUE, "message_id": "ghost"}
    edit_ledger(
        planted.publisher,
        lambda lines: [
            *lines,
            *({"kind": kind, "time": lines[-1]["time"]} | told_late for kind in ("published", "confirmed")),
        ],
    )
    end_ms = round(json.loads(planted.publisher.read_text().splitlines()[-1])["time"] * 1000) + 3_600_000
    audit = audited(spark, planted, end_ms=end_ms)
    assert set(verdicts(audit.findings).values()) == {Verdict.REFUTED}
    assert exit_code(audit.findings) is ExitCode.REFUTED
    found = {promise: audit.findings.of(promise).violations for promise in Promise}
    disagreements = found[Promise.REPLICAS]
    assert [one.index for one in disagreements] == [at] and "n1" in disagreements[0].brokers, disagreements
    assert {one.message for one in found[Promise.CONFIRMED]} == {lost, lost_of_exchange, unseen, "ghost"}
    assert {one.message: one.offset for one in found[Promise.CONFIRMED]}[unseen] == places[unseen][1]
    assert {one.message for one in found[Promise.ACKED]} == {back, ids[1]}
    assert {one.queue for one in found[Promise.ACKED]} == {QUEUE}
    # The swapped ones are wrong by the log itself, and by their publisher's ledger.
    assert {one.message for one in found[Promise.ORDER]} == {late, *ids[20:21]}
    summary = summarize(audit)
    assert not summary.good and "refuted" in summary.verdict
    named = json.loads(summary.to_json())["tables"]["Violations"]
    assert all(row["expected"] and row["what happened"] for row in named)


def places_of(store: Path) -> dict[str, tuple[int, int]]:
    return {
        id_of(record): record.places[0]
        for _, _, payload in all_entries(store)
        for record in records_of(payload)
        if isinstance(record, EnqueueRecord)
    }


def id_of(record: object) -> str:
    return str(read_property(record.header, "message_id")) if isinstance(record, EnqueueRecord) else ""


def header_of(store: Path, message: str) -> bytes:
    for _, _, payload in all_entries(store):
        for record in records_of(payload):
            if id_of(record) == message:
                assert isinstance(record, EnqueueRecord)
                return record.header
    raise AssertionError(message)


def test_an_entry_that_was_changed_everywhere_breaks_the_chain(
    spark: SparkSession, world: World, tmp_path: Path
) -> None:
    planted = world.copy(tmp_path)
    at = entry_with(planted.stores[0], b"m10")
    change_entries(
        planted.stores,
        lambda index, term, payload: (term, payload.replace(b"body", b"soul") if index == at else payload),
        chained=False,
    )
    audit = audited(spark, planted, ledgers=False)
    violations = audit.findings.of(Promise.REPLICAS).violations
    assert len(violations) >= 3 and "was changed" in violations[0].text


@pytest.mark.proves("S6")
def test_entries_that_cannot_be_read_are_not_judged(spark: SparkSession, world: World, tmp_path: Path) -> None:
    planted = world.copy(tmp_path)
    paths = [segment_paths(store) for store in planted.stores]
    # One file is damaged on one broker: the others have it. One is missing everywhere, with its entries.
    data = bytearray(paths[0][2].read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    paths[0][2].write_bytes(data)
    for of_store in paths:
        of_store[4].unlink()
    paths[1][6].write_bytes(b"\x55" * 20_000)
    audit = audited(spark, planted)
    findings = audit.findings
    assert not findings.refuted and exit_code(findings) is ExitCode.NOT_JUDGED
    assert verdicts(findings)[Promise.CONFIRMED] is Verdict.IN_PART
    assert "may be in entries that were deleted or are unreadable" in findings.of(Promise.CONFIRMED).reasons
    assert any("head is damaged" in note for note in findings.notes)
    assert any("its content was changed" in note for note in findings.notes)
    assert len(audit.account.gaps) == 1
    alone = [reason for reason in findings.of(Promise.REPLICAS).reasons if "n2 has unreadable files" in reason]
    assert alone, findings.of(Promise.REPLICAS).reasons


def test_a_killed_root_that_is_away_may_have_entries_that_no_other_broker_has(
    spark: SparkSession, world: World, tmp_path: Path
) -> None:
    planted = world.copy(tmp_path)
    entries = all_entries(planted.stores[0])
    first = entries[-20][0]
    cut = {id_of(record) for index, _, payload in entries if index >= first for record in records_of(payload)} - {""}
    # The first has its last entries in a term of its own; those of the others are of a newer one, whichever broker was
    # elected last.
    newest = max(term for store in planted.stores for _, term, _ in all_entries(store))
    change_entries(planted.stores[:1], lambda index, term, payload: (newest + 1 if index >= first else term, payload))
    change_entries(planted.stores[1:], lambda index, term, payload: (newest + 2 if index >= first else term, payload))
    audit = audited(spark, planted, ledgers=False)
    assert not audit.findings.refuted, audit.findings.statements
    assert any("never committed" in note for note in audit.findings.notes)
    for store in planted.stores[1:]:
        begin_epoch(store)
    audit = audited(spark, planted, ledgers=False)
    assert {one.message for one in audit.findings.cut_off} == cut
    assert "Cut off by force" in summarize(audit).to_json()


def begin_epoch(store: Path) -> None:
    """Changes the store as a forced promotion does."""
    data = (store / "state").read_bytes()
    copy = decode_copy(data[:STATE_COPY_BYTES])
    assert copy is not None
    counter, state = copy
    state = msgspec.structs.replace(state, hard=msgspec.structs.replace(state.hard, epoch=1, epoch_id="forced"))
    encoded = encode_copy(state, counter + 1)
    (store / "state").write_bytes(encoded + data[len(encoded) :])


def test_too_few_logs_and_none_at_all(spark: SparkSession, world: World, tmp_path: Path) -> None:
    alone = audited(spark, World(world.stores[:1], ()), ledgers=False)
    assert exit_code(alone.findings) is ExitCode.NOT_JUDGED
    assert any("too few" in reason for reason in alone.findings.of(Promise.CONFIRMED).reasons)
    assert verdicts(alone.findings)[Promise.REPLICAS] is Verdict.NOT_JUDGED
    with pytest.raises(NoStore, match="contains no store"):
        audited(spark, World((tmp_path,), ()))
    with pytest.raises(NoStore, match="two of the stores"):
        audited(spark, World((world.stores[0], world.stores[0]), ()))
    empty = world.copy(tmp_path / "empty")
    for store in empty.stores:
        for path in segment_paths(store):
            path.unlink()
    nothing = audited(spark, empty, ledgers=False)
    assert set(verdicts(nothing.findings).values()) == {Verdict.NOT_JUDGED}
    assert "no entries" in summarize(nothing).verdict


class Cut(Exception):
    """The job is ended here."""


def test_an_audit_that_was_broken_off_goes_on(spark: SparkSession, world: World, tmp_path: Path) -> None:
    def cut(count: int) -> None:
        seen.append(count)
        if len(seen) == 5:
            raise Cut

    seen: list[int] = []
    notes = tmp_path / "notes"
    with pytest.raises(Cut):
        Audit(spark, AuditOptions(world.stores, notes=notes), cut).run()
    noted = len(list(notes.iterdir()))
    assert noted == 4
    seen = []
    audit = Audit(spark, AuditOptions(world.stores, notes=notes), seen.append)
    audit.run()
    assert seen[0] == noted, "these were not read again"
    assert verdicts(audit.findings)[Promise.REPLICAS] is Verdict.PROVEN


@pytest.mark.slow
@pytest.mark.proves("S6", "S7")
def test_an_audit_that_was_killed_goes_on(world: World, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    files = [word for store in world.stores for word in ("--data", str(store))]
    files += [word for ledger in world.ledgers for word in ("--ledger", str(ledger))]
    with job(tmp_path / "job", "audit", *files, "--notes", str(notes)) as audit:
        audit.start()
        audit.wait_for(lambda: notes.is_dir() and any(notes.glob("*.survey")), "a note")
        audit.kill()
        audit.start()
        summary = audit.wait()
        assert summary["verdict"].startswith("proven for entries 1 to ")
        assert "<svg" in audit.report.read_text()
