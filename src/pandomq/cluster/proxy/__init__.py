"""Serves clients on a broker that is not the root: it answers requests itself, or requests the answer from the root.

`Front` is a broker beside the one that follows the log. It has its own clients and their private queues and, from a
feed of commands, everything that is shared except the messages of shared queues. For each client that needs the root
there is a `Tunnel`, a connection to the root on which the front acts for the client. For all private queues of a vhost
there is one more tunnel, that of the `Trunk`.
"""
