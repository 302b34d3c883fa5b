"""The demo's report: the cluster's story, the rates of messages, the account, and the results of the jobs on Spark."""

from __future__ import annotations

from collections.abc import Sequence

from pandomq.pipeline import plots
from pandomq.pipeline.plots import Series, TimelineMark
from pandomq.pipeline.report import render
from pandomq.pipeline.summary import Chart, Summary, SummaryTable
from tools.demo.account import Account, Subscription
from tools.demo.grove import PRIMARIES
from tools.demo.story import ROLES, Story

LEAD = (
    "Three brokers and a secondary form one cluster under load. The secondary joined during the load, and the root "
    "was killed in the middle and restarted; publishers, consumers, subscribers and stream readers were connected to "
    "every broker, and Spark archived the stream."
)


def page(story: Story, account: Account, jobs: Sequence[Summary]) -> str:
    return render("PandoMQ: the demo", [the_cluster(story, account), the_account(account), *jobs], LEAD)


def the_cluster(story: Story, account: Account) -> Summary:
    lanes, events = story.lanes(), story.events()
    end_s = max((span.end for lane in lanes for span in lane.spans), default=1.0)
    short = [mark for mark in events if mark.text.startswith("kill") or "elected" in mark.text or "joined" in mark.text]
    takeover_s = story.takeover_s
    verdict = (
        (
            f"A new root was elected {takeover_s:.2f} s after the old one was killed; no publisher waited longer than "
            f"{account.counters.longest_pause_s:.2f} s for a confirm"
        )
        if takeover_s is not None
        else "No new root was elected after the old one was killed"
    )
    facts: dict[str, object] = {
        "brokers": PRIMARIES + 1,
        "messages sent": account.sent,
        "deliveries in total": sum(account.counters.totals[name] for name in ("delivered", "heard", "read")),
        "takeover": "" if takeover_s is None else f"{takeover_s:.2f} s",
        "longest pause": f"{account.counters.longest_pause_s:.2f} s",
        "median latency": f"{account.counters.latency_ms(0.5):.1f} ms",
    }
    return Summary(
        "the cluster",
        verdict,
        takeover_s is not None,
        facts,
        plots=[
            Chart("Role of each broker", plots.lanes(lanes, ROLES, end_s, events)),
            Chart("Messages per second", _rates(story, short)),
            Chart("Latency from publish to delivery", _latencies(story, short)),
            *_archived(story, short),
        ],
    )


def _rates(story: Story, marks: Sequence[TimelineMark]) -> str:
    names = {
        "confirmed": "confirmed to publishers",
        "delivered": "delivered from shared queues",
        "heard": "received by subscribers",
    }
    return plots.lines([Series(words, story.rates[name]) for name, words in names.items()], "s", "messages/s", marks)


def _latencies(story: Story, marks: Sequence[TimelineMark]) -> str:
    series = [Series("median", story.middle_ms), Series("p99", story.slow_ms)]
    return plots.lines(series, "s", "ms", marks, logarithmic=True)


def _archived(story: Story, marks: Sequence[TimelineMark]) -> list[Chart]:
    if not story.archived:
        return []
    series = [Series("confirmed, and in the stream", story.confirmed), Series("in the lake", story.archived)]
    return [Chart("Progress of the archive", plots.lines(series, "s", "messages", marks))]


def the_account(account: Account) -> Summary:
    good = account.balances()
    queues = [
        (line.broker, _lasted(line), _known(line, line.wanted), line.once, line.doubled, _known(line, line.unheard))
        for line in account.subscriptions()
    ]
    readers = [
        (reader.broker, reader.end_offset, reader.out_of_order, account.missing_of(reader)) for reader in account.read
    ]
    return Summary(
        "message accounting",
        (
            "The accounting balances: no confirmed message is lost, no message was delivered twice without a mark, and "
            "every subscriber received all of its messages"
        )
        if good
        else "The accounting does not balance",
        good,
        tables=[
            SummaryTable("Messages", ("what", "messages"), account.lines(), account.footnote),
            SummaryTable(
                "Subscribers, by private queue",
                ("broker", "lasted", "expected", "received once", "received twice", "missing"),
                sorted(queues, key=str),
            ),
            SummaryTable("Stream readers", ("last broker", "read", "out of order", "missing"), readers),
        ],
    )


def _known(line: Subscription, count: int) -> int | None:
    """The messages that a queue should have received after its broker was lost do not count."""
    return count if line.whole else None


def _lasted(line: Subscription) -> str:
    return "to the end" if line.whole else "lost with its broker"
