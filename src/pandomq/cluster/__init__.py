"""One virtual broker out of many: the links between brokers, and their messages.

Each broker dials every other one; it publishes on a connection that it dialed, and receives on one that it accepted. So
two brokers are linked by two connections, one for each direction. Both ends prove that they have the cluster's key.
Pure, like all rooms below the runtime: sockets and nonces come from outside.
"""
