"""The targets for the figures of clusters."""

from tools.compare.clusters import faults, works
from tools.compare.clusters.comparison import ClusterComparison
from tools.compare.peers.ledger import FAST
from tools.compare.peers.targets import Target
from tools.compare.peers.works import CONFIRM_P99_UNIT, RATE


def targets(comparison: ClusterComparison) -> list[Target]:
    speed, pauses = comparison.speed, comparison.faults
    promised = [(fault.subject, fault.pause_s_max) for fault in faults.FAULTS]
    promised.append((faults.RESTART_SUBJECT, faults.RESTART_PAUSE_S_MAX))
    catch_up = works.CATCH_UP_SUBJECT
    missed, sent = (speed.median(catch_up, FAST, unit) for unit in (works.MISSED_UNIT, works.SENT_UNIT))
    return [
        Target.at_least(
            works.THROUGHPUT_SUBJECT,
            works.THROUGHPUT_RATIO_MIN,
            speed.ratio(works.THROUGHPUT_SUBJECT, RATE, FAST),
            "× RabbitMQ",
        ),
        Target.at_most(
            f"{works.LATENCY_SUBJECT}: confirm p99",
            1.0,
            speed.ratio(works.LATENCY_SUBJECT, CONFIRM_P99_UNIT, FAST),
            "× RabbitMQ",
        ),
        Target.at_least(
            works.PROXIED_SUBJECT,
            works.PROXIED_SHARE_MIN,
            speed.median(works.PROXIED_SUBJECT, FAST, works.PROXIED_SHARE_UNIT),
            "× at the root",
        ),
        *(
            Target.at_most(f"{subject}: no confirm for", limit, pauses.median(subject, FAST, works.PAUSE_UNIT), "s")
            for subject, limit in promised
        ),
        Target.at_least(
            f"{catch_up}: throughput meanwhile",
            round(works.SHARE_MIN, 2),
            speed.median(catch_up, FAST, works.SHARE_UNIT),
            "× with three",
        ),
        Target.at_most(
            f"{catch_up}: bytes sent to it",
            works.SENT_MAX,
            None if missed is None or sent is None else sent / missed,
            "× what it missed",
        ),
    ]
