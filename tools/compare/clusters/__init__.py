"""Clusters of three under faults: PandoMQ beside RabbitMQ's quorum queues, on one machine, with the same measurements.

Brokers are started as an operator would start them, and measured from outside: by a publisher's confirms and by the
bytes on an interface. Nothing here uses the internals of either.
"""
