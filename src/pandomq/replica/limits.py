"""The limits of what the replica holds and sends. The assertions at the end are part of the contract."""

from typing import Final

from pandomq.limits import KIB, MIB

# Membership.
MEMBERS_MAX: Final = 15
"""Primaries of one cluster, counting both sets of a change that is under way."""
MEMBERSHIPS_CACHED: Final = 64
"""Memberships whose names are cached."""
RECORD_BYTES_MAX: Final = 12 * KIB
"""The replica's part of the hard state; a change of members that would need more is rejected."""
EPOCHS_KEPT: Final = 16
"""Forced promotions whose place in the log is recorded; a log that is older than all of them is replaced as a whole."""
LISTENERS_MAX: Final = 256
"""Brokers that get the log without being voters: learners and secondaries."""

# The log between brokers.
APPEND_BYTES_MAX: Final = 1 * MIB
"""Payloads of one append, unless a single entry is larger."""
APPEND_ENTRIES_MAX: Final = 1024
IN_FLIGHT_APPENDS_MAX: Final = 32
"""Appends to one peer that it has not answered yet."""
IN_FLIGHT_BYTES_MAX: Final = 8 * MIB
"""Maximum bytes of their payloads; a slower backup no longer gets new entries at once."""
WINDOW_BYTES_FIRST: Final = 256 * KIB
"""The initial window; it grows and shrinks with how soon heartbeats are answered."""
WINDOW_BYTES_MIN: Final = 64 * KIB
TAIL_BYTES_MAX: Final = 32 * MIB
"""Entries kept in memory for sending. A backup that needs older ones is out of sync and gets them from disk."""
TAIL_ENTRIES_MAX: Final = 65_536
"""Of these, however small they are."""
UNCOMMITTED_BYTES_MAX: Final = 64 * MIB
"""Proposed and not committed; beyond it publishers are held back."""
HELD_MESSAGES_MAX: Final = 1024
"""Messages that wait for the hard state to be saved; the oldest are dropped first: a message may be lost at any
time."""
EXCERPTS_GATHERED: Final = 64
"""Entries without content for secondaries, waiting for one with content, or for a heartbeat."""
EXCERPTS_KEPT: Final = 256
"""Excerpts in memory for secondaries that keep up."""

# Snapshots between brokers.
SNAPSHOT_PIECES_IN_FLIGHT_MAX: Final = 8
"""To one peer, that it has not taken; fewer where the window is smaller, as if each took its share of it."""
SNAPSHOT_PIECE_BYTES_MAX: Final = 16 * MIB
"""The receiver rejects a larger piece."""

SNAPSHOT_RAW_PIECES_MAX: Final = 64
"""Pieces requested in full at once, by a receiver that lacks bodies that lean ones leave out; after these it tries lean
ones again."""

# Hand-over.
HAND_OVER_BYTES_MAX: Final = 16 * MIB
"""The old root's report to the new one beside the log; if it would be larger the old root sends none, and the new one
assumes the worst about deliveries."""

# Time, where it is not configured.
CANDIDACY_STEP_MS: Final = 50
"""The delay of a candidacy between a broker and the next in seniority."""
EQUAL_AGE_MS: Final = 1_000
"""Brokers whose ages differ by no more than this become candidates in the order of their names."""
CANDIDACY_JITTER_MS: Final = 20
"""A random delay separates brokers that seniority does not."""
GREETING_MS: Final = 1_000
"""How often a broker sends a greeting to its peers."""
TOLD_SLACK_MS: Final = 6_000
"""Two brokers that both have a recent entry of the root differ by no more than this about the cluster's time: a root
writes one each minute, and clocks drift by a tenth at most until the next."""
HAND_OVER_MS: Final = 2_000
"""How long a hand-over may take before it is cancelled."""
HAND_OVER_CLOSE_MS: Final = 300
"""Disks are close behind if they sync the end of the log within this time."""
HAND_OVER_HALT_MS: Final = 700
"""How long publishers wait for a hand-over before it is cancelled: with an election less than a second (R37)."""
CHANGE_MS: Final = 60_000
"""How long new members may take to catch up before their change is cancelled."""
AWAY_MS: Final = 60_000
"""The log that a silent backup in the middle of catching up needs is kept for this time."""
PROBE_MS: Final = 1_000
"""How long a forced promotion waits for answers of the primaries that the operator names as gone."""
PROBE_AGAIN_MS: Final = 100
"""Time between two probes of a forced promotion to the same broker: one that was down or cut off may be back."""
PROBE_ANSWER_MS_MAX: Final = 500
"""The answer of a remaining primary is younger than this when the new epoch begins."""
PROMOTION_TERM_STEP: Final = 1_000
"""A new epoch's terms begin this much higher, so that the two sides of a split rarely use the same number."""

assert EXCERPTS_GATHERED < EXCERPTS_KEPT
assert APPEND_BYTES_MAX < IN_FLIGHT_BYTES_MAX < TAIL_BYTES_MAX
assert HAND_OVER_CLOSE_MS < HAND_OVER_HALT_MS < HAND_OVER_MS
assert CANDIDACY_JITTER_MS < CANDIDACY_STEP_MS, "chance must not turn seniority around"
