"""PandoMQ: a message broker that speaks AMQP 0-9-1 as RabbitMQ's clients know it.

The modules of this directory are the vocabulary: ids, errors, limits, the protocol's nouns. They import nothing else of
the package. Each directory is a room; ARCHITECTURE.md says what it holds and which way the arrows between rooms point.
"""

__version__ = "0.1.0"
