"""One virtual broker out of many: membership, links between brokers, and what crosses them.

Will hold the view of who is primary, root, backup, learner or secondary; the authenticated links over which brokers
speak AMQP to each other; redirecting or proxying of clients whose queue is active elsewhere; the meta-bindings that
bring a message once to each broker that needs it; and the state a newcomer is given. Knows the broker through one
narrow interface, and does no I/O.
"""
