"""The demo's report: the cluster's story, how messages moved through it, the account, and what jobs on Spark found."""

from __future__ import annotations

from collections.abc import Sequence

from pandomq.pipeline import plots
from pandomq.pipeline.plots import Mark, Series
from pandomq.pipeline.report import render
from pandomq.pipeline.summary import Plot, Summary, Table
from tools.demo.account import Account, Subscription
from tools.demo.grove import PRIMARIES
from tools.demo.story import ROLES, Story

LEAD = (
    "Three brokers and a secondary as one, under load. The secondary joined while everybody worked, the root was "
    "killed in the middle and came back; publishers, consumers, subscribers and readers of a stream were on every "
    "broker, and Spark read along."
)


def page(story: Story, account: Account, jobs: Sequence[Summary]) -> str:
    return render("PandoMQ: the demo", [the_cluster(story, account), the_account(account), *jobs], LEAD)


def the_cluster(story: Story, account: Account) -> Summary:
    lanes, events = story.lanes(), story.events()
    end_s = max((span.end for lane in lanes for span in lane.spans), default=1.0)
    short = [mark for mark in events if mark.text.startswith("kill") or "elected" in mark.text or "joined" in mark.text]
    takeover_s = story.takeover_s
    verdict = (
        f"Another root was elected {takeover_s:.2f} s after the first was killed; no publisher waited longer than "
        f"{account.counters.longest_pause_s:.2f} s for a confirm"
        if takeover_s is not None
        else "No root was elected after the first was killed"
    )
    facts: dict[str, object] = {
        "brokers": PRIMARIES + 1,
        "messages sent": account.sent,
        "deliveries, all together": sum(account.counters.totals[name] for name in ("delivered", "heard", "read")),
        "takeover": "" if takeover_s is None else f"{takeover_s:.2f} s",
        "longest pause": f"{account.counters.longest_pause_s:.2f} s",
        "latency, half are below": f"{account.counters.latency_ms(0.5):.1f} ms",
    }
    return Summary(
        "the cluster",
        verdict,
        takeover_s is not None,
        facts,
        plots=[
            Plot("Who was what", plots.lanes(lanes, ROLES, end_s, events)),
            Plot("Messages a second", _rates(story, short)),
            Plot("From publish to delivery", _latencies(story, short)),
            *_archived(story, short),
        ],
    )


def _rates(story: Story, marks: Sequence[Mark]) -> str:
    names = {
        "confirmed": "confirmed to publishers",
        "delivered": "delivered from shared queues",
        "heard": "heard by subscribers",
    }
    return plots.lines([Series(words, story.rates[name]) for name, words in names.items()], "s", "messages/s", marks)


def _latencies(story: Story, marks: Sequence[Mark]) -> str:
    series = [Series("half of them", story.middle_ms), Series("99 of 100", story.slow_ms)]
    return plots.lines(series, "s", "ms, at most", marks, logarithmic=True)


def _archived(story: Story, marks: Sequence[Mark]) -> list[Plot]:
    if not story.archived:
        return []
    series = [Series("confirmed, and in the stream", story.confirmed), Series("in the lake", story.archived)]
    return [Plot("What Spark archives meanwhile", plots.lines(series, "s", "messages", marks))]


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
        "the account",
        "It balances: nothing confirmed is lost, nothing came twice unmarked, everybody heard all there was to hear"
        if good
        else "It does not balance",
        good,
        tables=[
            Table("Messages", ("what", "how many"), account.lines()),
            Table(
                "Subscribers, by private queue",
                ("broker", "was there", "to hear", "heard once", "heard twice", "not heard"),
                sorted(queues, key=str),
            ),
            Table("Readers of the stream", ("broker, at last", "read", "out of order", "missing"), readers),
        ],
    )


def _known(line: Subscription, count: int) -> int | None:
    """What a queue was to hear after its broker was lost is nobody's business."""
    return count if line.whole else None


def _lasted(line: Subscription) -> str:
    return "until the end" if line.whole else "lost with its broker"
