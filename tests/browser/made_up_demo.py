"""A synthetic run of the demo, to inspect its report without three brokers and Spark."""

from __future__ import annotations

import math

from pandomq.pipeline.plots import TimelineMark, TimelineSpan
from tools.demo.account import Account, Archived
from tools.demo.counters import Counters
from tools.demo.story import Story
from tools.demo.words import Heard, Progress, Published, Read, Seen

KILLED_S, TAKEN_S, RETURNED_S, END_S = 27.9, 28.4, 38.0, 62.0


def story() -> Story:
    told = Story(killed_s=KILLED_S)
    told.marks = [
        TimelineMark(3.2, "the three brokers form a cluster"),
        TimelineMark(3.3, "Spark is started to archive the stream"),
        TimelineMark(9.9, "n4 is started as a secondary"),
        TimelineMark(11.8, "n4 has joined, and clients connect to it"),
        TimelineMark(KILLED_S, "kill -9 n2, the root"),
        TimelineMark(RETURNED_S, "n2 is started again"),
        TimelineMark(40.1, "n2 has caught up: all four are in sync"),
        TimelineMark(61.0, "the archive is complete: 33,412 rows"),
    ]
    told._elections = {
        1: TimelineMark(2.1, "n2 is elected root, term 1"),
        2: TimelineMark(TAKEN_S, "n3 is elected root, term 2"),
    }
    told._roles = {
        "n1": [TimelineSpan(3.2, END_S, "backup")],
        "n2": [
            TimelineSpan(3.2, KILLED_S, "root"),
            TimelineSpan(KILLED_S, RETURNED_S, "dead"),
            TimelineSpan(RETURNED_S, 40.1, "learner"),
            TimelineSpan(40.1, END_S, "backup"),
        ],
        "n3": [TimelineSpan(3.2, TAKEN_S, "backup"), TimelineSpan(TAKEN_S, END_S, "root")],
        "n4": [TimelineSpan(11.8, END_S, "secondary")],
    }
    for step in range(10, 120):
        at_s = step / 2
        gone = KILLED_S <= at_s <= TAKEN_S
        rate = 0.0 if gone else 1000 + 40 * math.sin(step)
        for name, share in (("confirmed", 1.0), ("delivered", 1.02), ("heard", 1.3), ("read", 1.9)):
            told.rates[name].append((at_s, rate * share))
        told.middle_ms.append((at_s, 500.0 if gone else 3 + math.sin(step)))
        told.slow_ms.append((at_s, 900.0 if gone else 20 + 9 * math.sin(step)))
    told.confirmed = [(at_s, at_s * 540.0) for at_s in range(5, 60)]
    told.archived = [(at_s, at_s * 500.0) for at_s in range(16, 60, 3)]
    return told


def account(*, deaf: bool = False) -> Account:
    count = 3000
    all_of_them = {(0, 1): b"\x01" * count}
    counters = Counters(longest_pause_s=0.52)
    counters.add(Progress(published=count, confirmed=count, delivered=count, latencies_ms=(2.0, 3.0, 40.0)))
    heard = {(0, 1): b"\x01\x00\x00" * (count // 3)}
    return Account(
        counters,
        {0: Published(0, count, (), 12, tuple(float(number) for number in range(count)))},
        [Seen(all_of_them, all_of_them)],
        [
            Heard("n1", True, -1.0, heard),
            Heard("n2", False, -1.0, heard),
            Heard("n3", True, -1.0, {} if deaf else heard),
            Heard("n4", True, -1.0, heard),
        ],
        [Read("n3", count, 0, all_of_them), Read("n4", count, 0, all_of_them)],
        Archived(count, 0, all_of_them),
        subscribed=4,
        listened=2,
    )
