"""The data port: streams by offset, staged batches and leases, for clients that transfer much at once.

Pure, like the node around it: bytes and reports come in, `effects` go out. `sessions` is the entry point; the requests
are in `handlers`, one file for each subject.
"""
