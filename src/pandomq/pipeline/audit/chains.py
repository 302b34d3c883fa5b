"""Compares the logs by their chains: also where the entries are reclaimed, and each log with itself.

The chain after an entry is computed from the checksums of all entries up to it. Files record it at both their ends,
snapshots at regular points of the whole log. If a file's seal or its neighbours have another chain than its entries, it
was changed after it was written, even if its checksums are right.
"""

from __future__ import annotations

from pathlib import Path

from pandomq.pipeline.audit.findings import Findings, Promise, Violation
from pandomq.pipeline.audit.logs import BrokerLog, Logs
from pandomq.pipeline.audit.stores import chain_points

ONE_CHAIN = "one chain of checksums, as it was when the entries were written"


def check_chains(logs: Logs, findings: Findings) -> None:
    told = {log.name: _told(log, findings) for log in logs.brokers}
    if not logs.brokers:
        return
    statement = findings.of(Promise.REPLICAS)
    # A known difference continues in everything after it.
    known = min((violation.index for violation in statement.violations if violation.index is not None), default=2**62)
    highest = logs.brokers[0]
    compared = 0
    for place, log in enumerate(logs.brokers):
        for higher in logs.brokers[:place]:
            end = min(log.surplus_from, higher.surplus_from, known)
            common = sorted(index for index in told[log.name].keys() & told[higher.name].keys() if index < end)
            compared = max(compared, common[-1] if common else 0)
            apart = [index for index in common if told[log.name][index] != told[higher.name][index]]
            if apart:
                before = max((index for index in common if index < apart[0]), default=0)
                text = f"an entry after {before} and up to {apart[0]} differs between {higher.name} and {log.name}"
                brokers = f"{higher.name}, {log.name}"
                statement.breaks(Violation(Promise.REPLICAS, text, ONE_CHAIN, index=apart[0], brokers=brokers))
                known = min(known, apart[0])
    first = min((segment.first_index for log in logs.brokers for segment in log.segments), default=1)
    if first > 1 and compared < first - 1 and len(highest.files.voters) > 1:
        statement.left_out("entries from before the oldest file that is kept", first - 1 - compared)


def _told(log: BrokerLog, findings: Findings) -> dict[int, int]:
    """The chain after some entries, from this broker's files."""
    told: dict[int, int] = {}
    for segment in log.segments:
        if segment.chain_before is not None:
            _note(log, told, segment.first_index - 1, segment.chain_before, findings)
        after = segment.chain_after
        if after is not None:
            if segment.chain_sealed is not None and segment.chain_sealed != after:
                _changed(log, segment.first_index, segment.last_index, findings)
                after = segment.chain_sealed
            _note(log, told, segment.last_index, after, findings)
    for path in log.files.snapshots[:1]:
        points = chain_points(Path(path))
        if points is not None:
            for place, chain in enumerate(points.values, start=1):
                told.setdefault(place * points.stride, chain)
    return told


def _note(log: BrokerLog, told: dict[int, int], index: int, chain: int, findings: Findings) -> None:
    if told.setdefault(index, chain) != chain and index < log.surplus_from:
        _changed(log, index, index + 1, findings)


def _changed(log: BrokerLog, first: int, last: int, findings: Findings) -> None:
    statement = findings.of(Promise.REPLICAS)
    text = f"an entry from {first} to {last} was changed on {log.name} after it was written"
    statement.breaks(Violation(Promise.REPLICAS, text, ONE_CHAIN, index=first, brokers=log.name))
