"""The data port: streams by offset, staged batches and leases, for clients that move much at once.

Pure, like the node around it: bytes and reports come in, `effects` go out. `desk` is where to begin; what can be asked
is in `handlers`, one file for each subject.
"""
