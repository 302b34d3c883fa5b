"""Clusters of three under faults: PandoMQ beside RabbitMQ's quorum queues, on one machine, through the same eyes.

Brokers are started as a person would start them, and measured from outside: by the confirms that a publisher gets and
by the bytes that pass an interface. Nothing here knows the inside of either.
"""
