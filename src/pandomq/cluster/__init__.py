"""One virtual broker out of many: the links between brokers, and what crosses them.

Each broker dials every other one; on a connection that it dialed it publishes, on one that it accepted it listens. So
two brokers are linked by two connections, one for each direction. Both ends prove that they have the cluster's key.
Pure, like all rooms below the runtime: sockets and nonces come from outside.
"""
