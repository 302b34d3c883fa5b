"""Elects a root and replicates one log.

Will hold one file per role: follower, candidate, root, learner. Pure: time arrives as tick(), peers as step(), chance
as an injected Random; what must happen outside is returned as effects (persist, send, commit, role change, snapshot,
resign), in the order in which it must happen. Entries are opaque bytes here.
"""
