"""Faults of a cluster under a publisher's load, and the pauses without a confirm that they cause.

Every fault hits the leader. A trial ends when confirms flow again, or when that takes too long; then the fault is
undone, and the account of the messages has to balance, or the trial does not count.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from tools.compare.clusters import limits
from tools.compare.clusters.account import Account, collect
from tools.compare.clusters.cluster import Cluster
from tools.compare.clusters.enduring import EnduringPublisher
from tools.compare.clusters.member import Member
from tools.compare.clusters.timeline import Timeline


class Fault(NamedTuple):
    subject: str
    strike: Callable[[Member], None]
    possible: Callable[[Member], bool]
    pause_s_max: float
    """Our target."""


KILL = Fault("the leader is killed (kill -9)", Member.kill, lambda _: True, 0.5)
FREEZE = Fault("the leader is frozen (SIGSTOP)", Member.freeze, lambda _: True, 2.0)
CUT = Fault(
    "the leader is cut off from all", lambda member: member.place.cut(), lambda member: member.place.can_be_cut, 2.0
)
STALL = Fault("the leader's disk stalls", lambda member: member.disk.stall(), lambda member: member.disk.can_stall, 3.0)
FAULTS = (KILL, FREEZE, CUT, STALL)

RESTART_SUBJECT = "each broker in turn is stopped and started"
RESTART_PAUSE_S_MAX = 1.0


class Trial(NamedTuple):
    pauses_s: list[float]
    """One, or one for each broker."""
    over: bool
    """False: confirms did not come back within the time allowed."""
    account: Account
    story: list[str]


def inflict(cluster: Cluster, fault: Fault, turn: int) -> Trial:
    """One trial of one fault; the cluster is complete before it and after it."""
    with _publishing(cluster, turn) as (publisher, leader):
        struck_ns = time.monotonic_ns()
        _meanwhile(publisher, lambda: fault.strike(leader))
        _publish_until_it_flows(publisher, struck_ns)
        pause = publisher.timeline.longest_pause(struck_ns, time.monotonic_ns())
        account = _settle(cluster, publisher)
    return Trial([pause.seconds], pause.over, account, publisher.timeline.told_since(struck_ns))


def restart_all(cluster: Cluster, turn: int) -> Trial:
    """Each member is asked to end and started again, the next as soon as the cluster is complete."""
    with _publishing(cluster, turn) as (publisher, _):
        begun_ns = time.monotonic_ns()
        pauses = []
        for member in cluster.members:
            asked_ns = time.monotonic_ns()
            _meanwhile(publisher, member.terminate)
            _meanwhile(publisher, cluster.mend)
            pauses.append(publisher.timeline.longest_pause(asked_ns, time.monotonic_ns()))
        account = _settle(cluster, publisher)
    over = all(pause.over for pause in pauses)
    return Trial([pause.seconds for pause in pauses], over, account, publisher.timeline.told_since(begun_ns))


@contextmanager
def _publishing(cluster: Cluster, turn: int) -> Iterator[tuple[EnduringPublisher, Member]]:
    """A publisher sends at a steady rate to the leader of a queue that is declared for it."""
    queue = f"fault.{secrets.token_hex(3)}"
    leader = cluster.declare(queue, turn)
    urls = [member.url for member in cluster.members]
    publisher = EnduringPublisher(urls, queue, Timeline(limits.SILENCE_NS), leader.url)
    try:
        _publish_for(publisher, limits.BEFORE_FAULT_S)
        yield publisher, leader
    finally:
        publisher.close()
        # After any failure the next trial begins with a complete cluster.
        cluster.mend()
        cluster.delete(queue)


def _publish_for(publisher: EnduringPublisher, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        publisher.turn()


def _publish_until_it_flows(publisher: EnduringPublisher, struck_ns: int) -> None:
    while (now_ns := time.monotonic_ns()) - struck_ns < limits.FAULT_TIMEOUT_S * 1e9:
        publisher.turn()
        since_ns = publisher.timeline.flowing_since(now_ns)
        watched_s = (now_ns - struck_ns) / 1e9
        if since_ns is not None and watched_s > limits.WATCH_S_MIN and now_ns - since_ns > limits.AFTER_FAULT_S * 1e9:
            return


def _meanwhile(publisher: EnduringPublisher, work: Callable[[], None]) -> None:
    """Publishes until the work, in a thread of its own, is done."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        done = pool.submit(work)
        while not done.done():
            publisher.turn()
        done.result()


def _settle(cluster: Cluster, publisher: EnduringPublisher) -> Account:
    publisher.stop()
    _meanwhile(publisher, cluster.mend)
    end = time.monotonic() + limits.FAULT_TIMEOUT_S
    while not publisher.settled and time.monotonic() < end:
        publisher.turn()
    account = collect(cluster.leader(0).url, publisher.queue, publisher.confirmed)
    account.insist()
    return account
