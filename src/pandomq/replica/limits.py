"""What the replica may hold and send, by name. The assertions at the end are part of the contract."""

from typing import Final

from pandomq.limits import KIB, MIB

# Membership.
MEMBERS_MAX: Final = 15
"""Primaries of one cluster, counting both sets of a change that is under way."""
MEMBERSHIPS_CACHED: Final = 64
"""Of which the names are kept at hand."""
RECORD_BYTES_MAX: Final = 12 * KIB
"""The replica's part of the hard state; a change of members that would need more is refused."""
EPOCHS_KEPT: Final = 16
"""Forced promotions whose place in the log is remembered; a log that is older than all of them is replaced whole."""
LISTENERS_MAX: Final = 256
"""Brokers that are no voters and get the log all the same: learners and secondaries."""

# The log between brokers.
APPEND_BYTES_MAX: Final = 1 * MIB
"""Payloads of one append, unless a single entry is larger."""
APPEND_ENTRIES_MAX: Final = 1024
IN_FLIGHT_APPENDS_MAX: Final = 32
"""Appends to one peer that it has not answered."""
IN_FLIGHT_BYTES_MAX: Final = 8 * MIB
"""Their payloads, at most; a backup that is slower than that no longer gets what is new at once."""
WINDOW_BYTES_FIRST: Final = 256 * KIB
"""With which it begins; it grows and shrinks with how soon heartbeats are answered."""
WINDOW_BYTES_MIN: Final = 64 * KIB
TAIL_BYTES_MAX: Final = 32 * MIB
"""Entries kept in memory for sending. A backup that needs older ones is out of sync and gets them from disk."""
TAIL_ENTRIES_MAX: Final = 65_536
"""Of these, however small they are."""
UNCOMMITTED_BYTES_MAX: Final = 64 * MIB
"""Proposed and not committed; past it publishers are to be held back."""
HELD_MESSAGES_MAX: Final = 1024
"""Messages that wait for the hard state to be saved; the oldest go first: a message may be lost at any time."""
EXCERPTS_GATHERED: Final = 64
"""Entries that say nothing to secondaries and wait for one that does, or for a heartbeat."""
EXCERPTS_KEPT: Final = 256
"""Excerpts in memory for secondaries that keep up."""

# Snapshots between brokers.
SNAPSHOT_PIECES_IN_FLIGHT_MAX: Final = 8
"""To one peer, that it has not taken; fewer where the window is narrower, as if each took its share of it."""
SNAPSHOT_PIECE_BYTES_MAX: Final = 16 * MIB
"""A larger piece is refused by its receiver."""

SNAPSHOT_RAW_PIECES_MAX: Final = 64
"""Asked for whole at once, by who lacks what lean ones leave out; then it is tried again whether it does."""

# Hand-over.
HAND_OVER_BYTES_MAX: Final = 16 * MIB
"""What the old root tells the new one beside the log; if it is more, it tells nothing, and the new one assumes the
worst of what was delivered."""

# Time, where it is not configured.
CANDIDACY_STEP_MS: Final = 50
"""How much later the next in seniority stands."""
EQUAL_AGE_MS: Final = 1_000
"""Brokers whose ages differ by no more stand in the order of their names."""
CANDIDACY_JITTER_MS: Final = 20
"""Chance parts those whom seniority cannot."""
GREETING_MS: Final = 1_000
"""How often a broker tells its peers who it is."""
HAND_OVER_MS: Final = 2_000
"""How long publishers wait for a hand-over before it is given up."""
CHANGE_MS: Final = 60_000
"""How long new members may take to catch up before their change is given up."""
AWAY_MS: Final = 60_000
"""For so long what a backup needs that was catching up is remembered though it is silent."""
PROBE_MS: Final = 1_000
"""How long a forced promotion waits for an answer of those who are said to be dead."""
PROMOTION_TERM_STEP: Final = 1_000
"""A new epoch's terms begin this much higher, so that the two sides of a split rarely use the same number."""

assert EXCERPTS_GATHERED < EXCERPTS_KEPT
assert APPEND_BYTES_MAX < IN_FLIGHT_BYTES_MAX < TAIL_BYTES_MAX
assert CANDIDACY_JITTER_MS < CANDIDACY_STEP_MS, "chance must not turn seniority around"
