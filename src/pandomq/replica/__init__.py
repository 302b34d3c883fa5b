"""Elects a root and replicates one log.

Pure: time arrives as tick(), peers as step(), chance is injected; what must happen outside is returned as effects, in
the order in which it must happen, and answered by completions. Entries are opaque bytes, but for the replica's own.

    the seam                 replica, effects, completions, messages, ports, settings, hard_state, view
    what all roles share     core, outbox (state first), tail (the end of the log), record (members and epochs)
    roles                    roles/: one file each, the table of transitions, and which of them is whose
    election                 votes, seniority, lease, quorum, membership
    commit                   commitment, in_sync
    the log between brokers  replication, progress, appending, catching_up; snapshot_in for a broker that is too far
    behind
    operator requests        hand_over, change, promotion
    start                    startup, dispatch; invariants are what always holds

Each decision that safety depends on is a small function or method of its own, called through its module, so that a test
can plant a bug in it. docs/replication.md describes the protocol, docs/adr/0008 the reasons.
"""
