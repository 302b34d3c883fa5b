"""Elects a root and replicates one log.

Pure: time arrives as tick(), peers as step(), chance is injected; what must happen outside is returned as effects, in
the order in which it must happen, and answered by completions. Entries are opaque bytes, but for the replica's own.

    the seam                 replica, effects, completions, messages, ports, settings, hard_state, view
    what all roles share     core, outbox (state first), tail (the end of the log), record (members and epochs)
    roles                    roles/: one file each, the table of transitions, and which of them is whose
    who becomes root         votes, seniority, lease, quorum, membership
    when an entry is safe    commitment, in_sync
    the log between brokers  replication, progress, appending, catching_up; snapshot_in for who is too far behind
    what a person asks for   hand_over, change, promotion
    the beginning            startup, dispatch; invariants is what always holds

Each decision that safety hangs on is a small function or method of its own, called through its module, so that a test
can plant a bug in it. docs/replication.md tells the story, docs/adr/0008 the reasons.
"""
