"""The summary of an audit: the verdict on each guarantee first, then its violations, message by message."""

from __future__ import annotations

import enum
from datetime import UTC, datetime

from pandomq.pipeline import plots
from pandomq.pipeline.audit import spans
from pandomq.pipeline.audit.findings import Findings, Statement, Verdict
from pandomq.pipeline.audit.job import Audit, AuditCounts
from pandomq.pipeline.summary import Chart, Summary, SummaryTable


class ExitCode(enum.IntEnum):
    PROVEN = 0
    REFUTED = 1
    NOT_JUDGED = 3
    """Nothing is refuted, but not everything could be judged."""


def exit_code(findings: Findings) -> ExitCode:
    if findings.refuted:
        return ExitCode.REFUTED
    return ExitCode.PROVEN if findings.proven else ExitCode.NOT_JUDGED


def summarize(audit: Audit) -> Summary:
    findings, account = audit.findings, audit.account
    statements = list(findings.statements.values())
    tables = [
        SummaryTable(
            "Promises",
            ("promise", "verdict", "judged", "violations", "what was left out, and why"),
            [(one.promise.value, one.verdict.value, one.judged, one.count, _reasons(one)) for one in statements],
        )
    ]
    violations = [violation for one in statements for violation in one.violations]
    if violations:
        tables.append(
            SummaryTable(
                "Violations",
                ("promise", "message", "queue", "offset", "entry", "brokers", "what happened", "expected"),
                [
                    (
                        one.promise.value,
                        one.message or "-",
                        one.queue or "-",
                        "-" if one.offset is None else one.offset,
                        "-" if one.index is None else one.index,
                        one.brokers or "all",
                        one.text,
                        one.expected,
                    )
                    for one in violations
                ],
            )
        )
    if findings.cut_off_count:
        rows = [
            (one.message or "-", one.queue, one.offset, one.index, one.broker, one.file) for one in findings.cut_off
        ]
        headers = ("message", "queue", "offset", "entry", "broker", "kept in")
        tables.append(SummaryTable(f"Cut off by force: {findings.cut_off_count}", headers, rows))
    tables.append(_brokers(audit))
    if findings.notes:
        tables.append(SummaryTable("Also found", ("what",), [(note,) for note in findings.notes]))
    held = [(name, float(entries)) for name, entries, *_ in rows_of_brokers(audit)]
    return Summary(
        "audit",
        words(findings, account),
        not findings.refuted,
        _facts(account),
        tables,
        [Chart("Entries that can be read", plots.bars(held, "entries"))] if held else [],
        findings.refuted or findings.proven,
    )


def words(findings: Findings, account: AuditCounts) -> str:
    """The verdict in a sentence; each guarantee has its own."""
    first, last = account.index_span
    if not last:
        return "not judged: the logs have no entries"
    where = f"entries {first} to {last}"
    if findings.proven:
        return f"proven for {where}: every guarantee was kept"
    named = {
        verdict: ", ".join(one.promise.value for one in findings.statements.values() if one.verdict is verdict)
        for verdict in (Verdict.REFUTED, Verdict.PROVEN, Verdict.IN_PART, Verdict.NOT_JUDGED)
    }
    each = "; ".join(f"{verdict.value}: {promises}" for verdict, promises in named.items() if promises)
    if findings.refuted:
        return f"refuted for {where} ({each})"
    if named[Verdict.PROVEN] or named[Verdict.IN_PART]:
        return f"proven in part for {where} ({each})"
    return f"not judged for {where}"


def _reasons(statement: Statement) -> str:
    return "; ".join(f"{reason}: {count:,}" if count else reason for reason, count in statement.reasons.items()) or "-"


def _facts(account: AuditCounts) -> dict[str, object]:
    first, last = account.index_span
    facts: dict[str, object] = {
        "entries of the log": f"{first} to {last}",
        "time": " to ".join(map(_time, account.time_span)),
        "entries read": account.entries,
        "bytes read": account.bytes_read,
        "messages": account.messages,
        "entered queues": account.entered,
        "left queues": account.left,
    }
    if account.gaps:
        facts["entries that nobody has or can read"] = spans.words(account.gaps)
    if account.lines:
        facts["ledgers judged"] = f"{_time(account.judged[0])} to {_time(account.judged[1])}"
    facts |= {f"lines of ledgers: {kind}": count for kind, count in sorted(account.lines.items())}
    taken_s = sum(account.seconds.values())
    facts |= {f"seconds for {name}": seconds for name, seconds in account.seconds.items()}
    facts["entries a second"] = round(account.entries / taken_s) if taken_s else 0
    return facts


def rows_of_brokers(audit: Audit) -> list[tuple[str, int, int, int, int, int, int, str]]:
    """The contents of each broker's files."""
    rows = []
    for store in audit.stores:
        held = [one for one in audit.account.segments if one.place.broker == store.broker and not one.empty]
        rows.append(
            (
                store.broker,
                sum(one.entries for one in held),
                min((one.first_index for one in held), default=0),
                max((one.last_index for one in held), default=0),
                store.epoch,
                len(held),
                sum(one.bytes_read for one in held),
                store.directory,
            )
        )
    return rows


def _brokers(audit: Audit) -> SummaryTable:
    headers = ("broker", "entries", "first", "last", "epoch", "files", "bytes", "directory")
    return SummaryTable("Logs", headers, rows_of_brokers(audit))


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds") if ms else "-"
