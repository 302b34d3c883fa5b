"""The words, the colour and the exit code of an audit say the same, and each promise is named with its own verdict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.pipeline.audit.findings import Findings, Promise, Verdict, Violation
from pandomq.pipeline.audit.job import AuditCounts
from pandomq.pipeline.audit.verdict import ExitCode, exit_code, summarize
from pandomq.pipeline.report import render
from pandomq.pipeline.summary import Summary


def findings_of(**verdicts: Verdict) -> Findings:
    """Those that are not named are proven."""
    findings = Findings()
    for promise in Promise:
        verdict, statement = verdicts.get(promise.name, Verdict.PROVEN), findings.of(promise)
        if verdict is not Verdict.NOT_JUDGED:
            statement.judged = 10
        if verdict in (Verdict.IN_PART, Verdict.NOT_JUDGED):
            statement.left_out("there is no ledger")
        if verdict is Verdict.REFUTED:
            statement.breaks(Violation(promise, "it was not", "it is"))
        assert statement.verdict is verdict
    return findings


def summary_of(findings: Findings, last_index: int = 9) -> Summary:
    audit: Any = SimpleNamespace(findings=findings, account=AuditCounts(index_span=(1, last_index)), stores=[])
    return summarize(audit)


@pytest.mark.proves("S6")
@pytest.mark.parametrize(
    ("verdicts", "code", "colour", "words"),
    [
        ({}, ExitCode.PROVEN, "good", "proven for entries 1 to 9: every guarantee was kept"),
        (
            {"CONFIRMED": Verdict.IN_PART, "ORDER": Verdict.NOT_JUDGED},
            ExitCode.NOT_JUDGED,
            "open",
            "proven in part for entries 1 to 9 (proven: replicas agree, nothing acked comes back; "
            "proven in part: nothing confirmed is lost; not judged: order is kept)",
        ),
        (
            {promise.name: Verdict.NOT_JUDGED for promise in Promise},
            ExitCode.NOT_JUDGED,
            "open",
            "not judged for entries 1 to 9",
        ),
        (
            {"REPLICAS": Verdict.REFUTED, "ORDER": Verdict.IN_PART},
            ExitCode.REFUTED,
            "bad",
            "refuted for entries 1 to 9 (refuted: replicas agree; proven: nothing confirmed is lost, "
            "nothing acked comes back; proven in part: order is kept)",
        ),
    ],
)
def test_texts_and_colours_follow_the_verdicts(
    verdicts: dict[str, Verdict], code: ExitCode, colour: str, words: str
) -> None:
    findings = findings_of(**verdicts)
    summary = summary_of(findings)
    assert exit_code(findings) is code
    assert summary.verdict == words
    assert f'<p class="verdict {colour}">' in render("audit", [summary])


def test_without_entries_nothing_is_judged() -> None:
    summary = summary_of(findings_of(**{promise.name: Verdict.NOT_JUDGED for promise in Promise}), last_index=0)
    assert summary.verdict == "not judged: the logs have no entries" and not summary.complete
