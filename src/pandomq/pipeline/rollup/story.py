"""The summary of a rollup: tables and plots of the newest windows and of events of the cluster, and the account."""

from __future__ import annotations

from collections.abc import Sequence

from pandomq.pipeline.rollup.pictures import bars, over_time
from pandomq.pipeline.rollup.sums import WINDOWS
from pandomq.pipeline.rollup.tables import all_tables
from pandomq.pipeline.rollup.views import VhostStory, written
from pandomq.pipeline.summary import Summary


def summarize(vhosts: Sequence[VhostStory], window: str, facts: dict[str, object], events: int) -> Summary:
    """This run rolled up `events`."""
    verdict = f"{events:,} events were added to the rollup" if events else "there were no new events"
    tables = [table for table in all_tables(vhosts, window) if table.rows]
    drawn = [plot for vhost in vhosts for plot in over_time(vhost, window)]
    return Summary("rollup", verdict, True, facts | _account(vhosts), tables, [*drawn, *bars(vhosts)])


def _account(vhosts: Sequence[VhostStory]) -> dict[str, object]:
    accounts = [vhost.account for vhost in vhosts]
    late = {name: sum(one.late.get(length_s, 0) for one in accounts) for name, length_s in WINDOWS.items()}
    return {
        "vhosts": ", ".join(vhost.vhost for vhost in vhosts),
        "events in all": sum(one.events for one in accounts),
        "batches in all": sum(one.batches for one in accounts),
        **{f"late for {name}": count for name, count in late.items()},
        "batches that came twice": sum(one.duplicates for one in accounts),
        "batches that are missing": sum(one.lost for one in accounts),
        "batches that cannot be read": sum(one.malformed for one in accounts),
        "events that brokers dropped": sum(one.dropped for one in accounts),
        "closed until": ", ".join(written(vhost.watermark_us) for vhost in vhosts if vhost.watermark_us > 0),
    }
