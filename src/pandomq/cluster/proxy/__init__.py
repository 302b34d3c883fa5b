"""A broker that is not the root and serves clients all the same: what they ask for is done here, or asked of the root.

`Front` is a broker beside the one that follows the log. It has its own clients, their private queues and, from a feed
of commands, all that is shared but no message of a shared queue. For each client that needs the root there is a
`Tunnel`, a connection to it on which the front speaks in the client's place; for all private queues of a vhost one
more, the `Trunk`'s.
"""
