"""Elects a root and replicates one log.

Pure: time arrives as tick(), peers as step(), chance is injected; what must happen outside is returned as effects, in
the order in which it must happen, and answered by completions. Entries are opaque bytes, but for the replica's own.

    the seam                 replica, effects, completions, ports, settings, view; protocol/messages, hard_state
    what all roles share     core, outbox (state first), record (members and epochs), lease
    roles/                   one file each, the table of transitions, and which of them is whose
    members/                 votes, seniority, quorum, membership; change and promotion, requested by operators
    log/                     the log between brokers: replication, progress, appending, catching_up; tail, its end in
                             memory; snapshot_in for a broker that is too far behind; commit: commitment, in_sync
    protocol/                messages, and the entries and excerpts in them; position compares logs
    operator requests        hand_over
    start                    startup, store_facts, dispatch; invariants are what always holds

Each decision that safety depends on is a small function or method of its own, called through its module, so that a test
can plant a bug in it. docs/replication.md describes the protocol, docs/adr/0008 the reasons.
"""
