"""This broker's view of the cluster, for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.admin.exposition import COUNTER, GAUGE, Exposition
from pandomq.node.views.cluster_view import BACKUP, LEARNER, ROOT, SECONDARY

if TYPE_CHECKING:
    from pandomq.node.views.records import ClusterView, MemberView, PassesView, PeerLinkView, SyncTimesView

_ROLES: Final = (ROOT, BACKUP, LEARNER, SECONDARY)


def add_cluster(page: Exposition, view: ClusterView) -> None:
    own = next((member for member in view.members if member.name == view.name), None)
    page.add("pandomq_cluster_epoch", GAUGE, "Number of the last forced promotion", view.epoch)
    page.add("pandomq_cluster_term", GAUGE, "Number of the last election", view.term)
    page.add(
        "pandomq_cluster_elections_total", COUNTER, "Root changes that this broker has observed", view.election_count
    )
    page.add("pandomq_cluster_has_root", GAUGE, "is 1 if a root is known", int(view.root is not None))
    page.add_all(
        "pandomq_cluster_role",
        GAUGE,
        "is 1 for the role that this broker has",
        [({"role": role}, int(role == view.role)) for role in _ROLES],
    )
    if own is not None and own.commit_index is not None:
        page.add("pandomq_log_commit_index", GAUGE, "Index of the last entry known to be committed", own.commit_index)
    page.add_all(
        "pandomq_cluster_alarm", GAUGE, "Alarms that are in effect", [({"alarm": alarm}, 1) for alarm in view.alarms]
    )
    page.add_all(
        "pandomq_member_connections",
        GAUGE,
        "Connections of clients at the broker",
        [({"member": member.name}, member.connections) for member in view.members if member.connections is not None],
    )
    _add_members(page, [member for member in view.members if member.log_index is not None and member is not own])
    _add_links(page, view.links)


def add_sync_times(page: Exposition, times: SyncTimesView) -> None:
    page.add("pandomq_log_syncs_total", COUNTER, "Syncs of the log to disk", times.count)
    page.add(
        "pandomq_log_sync_seconds_total", COUNTER, "Total time of the syncs of the log to disk", round(times.total_s, 6)
    )
    page.add("pandomq_log_sync_seconds_max", GAUGE, "Longest sync of the log to disk", round(times.longest_s, 6))


def add_passes(page: Exposition, passes: PassesView) -> None:
    page.add("pandomq_loop_passes_total", COUNTER, "Passes of the event loop that processed input", passes.count)
    page.add(
        "pandomq_loop_pass_seconds_total",
        COUNTER,
        "Total time of the passes of the event loop",
        round(passes.total_s, 6),
    )
    page.add("pandomq_loop_pass_seconds_max", GAUGE, "Longest pass of the event loop", round(passes.longest_s, 6))


def _add_members(page: Exposition, members: Sequence[MemberView]) -> None:
    """Adds the samples about members, which only the root knows."""
    page.add_all(
        "pandomq_member_in_sync",
        GAUGE,
        "is 1 if the broker is in sync with the root",
        [({"member": member.name}, int(bool(member.in_sync))) for member in members],
    )
    page.add_all(
        "pandomq_member_lag_bytes",
        GAUGE,
        "Bytes of the log that are not yet on the broker's disk",
        [({"member": member.name}, member.lag_bytes or 0) for member in members],
    )
    page.add_all(
        "pandomq_member_log_index",
        GAUGE,
        "Index of the last log entry of the broker",
        [({"member": member.name}, member.log_index or 0) for member in members],
    )


def _add_links(page: Exposition, links: Sequence[PeerLinkView]) -> None:
    page.add_all(
        "pandomq_link_up",
        GAUGE,
        "is 1 if the brokers are connected in both directions",
        [({"peer": link.name}, int(link.linked)) for link in links],
    )
    page.add_all(
        "pandomq_link_waiting_bytes",
        GAUGE,
        "Bytes that wait to be sent to the peer",
        [({"peer": link.name}, link.waiting_bytes) for link in links],
    )
    page.add_all(
        "pandomq_link_dropped_total",
        COUNTER,
        "Messages to the peer that were dropped because it did not read earlier ones",
        [({"peer": link.name}, link.dropped) for link in links],
    )
